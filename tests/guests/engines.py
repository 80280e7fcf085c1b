"""Every engine that must keep the contract, with the same small programs in its language."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.guests.sandbox_interpreters import OwnSandboxEngine
from tests.installed_programs import cache_folder

from holdfast.core import Tool
from holdfast.guests import Engine, ScriptedEngine, python_engine, script
from holdfast.guests.lisp import lisp_engine
from holdfast.guests.wasi import wasi_engine

KEY = b"a key for tests, and only for them"
ECHO = Tool(
    name="echo.say",
    description="Says the text again.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    returns={"type": "string"},
)


@dataclass(frozen=True, kw_only=True)
class Programs:
    """The programs of the contract tests in one language."""

    two: str
    """Its value is 2."""
    sets: str
    """Sets x to 41, so that a later run sees it."""
    reads: str
    """Its value is that of x."""
    prints: str
    """Prints hello."""
    says: str
    """Calls echo.say with `first`; the value is the answer."""
    says_twice: str
    """Calls echo.say with `first`, then with `second`; the value is the second answer."""
    catches: str
    """Calls echo.say with `first`; a refusal becomes a value that contains the reason."""
    keeps_then_says: str
    """Sets x to 41, prints before, calls echo.say with `first`, prints after; the value is the answer."""
    fails: str
    """Ends with the error boom."""
    unreadable: str
    """Does not parse."""
    spins: str
    """Never ends."""
    floods: str
    """Prints several kilobytes."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An engine under the contract."""

    make: Callable[[Path], Engine]
    programs: Programs


PYTHON = Programs(
    two="1 + 1",
    sets="x = 41",
    reads="x",
    prints="print('hello')",
    says="echo.say(text='first')",
    says_twice="echo.say(text='first')\necho.say(text='second')",
    catches="try:\n    answer = echo.say(text='first')\nexcept PermissionError as error:\n    answer = f'refused: {error}'\nanswer",
    keeps_then_says="x = 41\nprint('before')\nanswer = echo.say(text='first')\nprint('after')\nanswer",
    fails="raise ValueError('boom')",
    unreadable="x = [",
    spins="while True: pass",
    floods="print('x' * 5000)",
)

LISP = Programs(
    two="(+ 1 1)",
    sets="(define x 41)",
    reads="x",
    prints='(print "hello")',
    says='(echo/say :text "first")',
    says_twice='(echo/say "first") (call "echo.say" :text "second")',
    catches='(try (echo/say :text "first") (catch problem problem))',
    keeps_then_says="""
        (define x 41)
        (print "before")
        (define answer (echo/say :text "first"))
        (print "after")
        answer""",
    fails='(error "boom")',
    unreadable="(((",
    spins="(let loop () (loop))",
    floods='(print (string-repeat "x" 5000))',
)

SCRIPTED = Programs(
    two=script({"value": 2}),
    sets=script({"value": 41, "as": "x"}),
    reads=script({"value": {"$": "x"}}),
    prints=script({"print": "hello"}),
    says=script({"call": "echo.say", "arguments": {"text": "first"}}),
    says_twice=script(
        {"call": "echo.say", "arguments": {"text": "first"}},
        {"call": "echo.say", "arguments": {"text": "second"}},
    ),
    catches=script({"call": "echo.say", "arguments": {"text": "first"}, "catch": True}),
    keeps_then_says=script(
        {"value": 41, "as": "x"},
        {"print": "before"},
        {"call": "echo.say", "arguments": {"text": "first"}, "as": "answer"},
        {"print": "after"},
        {"value": {"$": "answer"}},
    ),
    fails=script({"fail": "boom"}),
    unreadable="no step",
    spins=script({"spin": True}),
    floods=script({"print": "x" * 5000}),
)


def _wasi(folder: Path) -> Engine:
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    return wasi_engine(key=KEY, cache=component_cache(), workspace=workspace)


def _system(folder: Path) -> Engine:
    return OwnSandboxEngine(folder, key=KEY)


def component_cache() -> Path:
    """Where the WASI component is kept between test runs; building it takes half a minute once."""
    return cache_folder("wasi")


ENGINES: dict[str, Candidate] = {
    "scripted": Candidate(make=lambda _: ScriptedEngine(key=KEY), programs=SCRIPTED),
    "python": Candidate(make=lambda _: python_engine(key=KEY), programs=PYTHON),
    "lisp": Candidate(make=lambda _: lisp_engine(key=KEY), programs=LISP),
    "wasi": Candidate(make=_wasi, programs=PYTHON),
    "system": Candidate(make=_system, programs=PYTHON),
}
