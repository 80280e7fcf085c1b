"""Checks code before it runs: it parses, its imports exist, and it calls the tools with the right arguments.

The interpreter checks types only as part of a run. The checker therefore gives the code to a separate session, behind a first line
that cannot pass. The check always fails, so nothing ever runs there, and every diagnostic but the first is about the code. Type
errors that Python itself ignores, such as a wrong annotation on a variable, are ignored here too.
"""

import asyncio
import builtins
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pydantic_monty as monty

from holdfast.core import Tool, Value, digest
from holdfast.core.errors import GuestError
from holdfast.guests.contract import GuestLimits
from holdfast.guests.python.worker import Worker
from holdfast.guests.python.worker_errors import WorkerLost, WorkerTimeout
from holdfast.guests.tool_stubs import class_name, python_name, render_stubs

OpenWorker = Callable[[GuestLimits, str], Awaitable[Worker]]
"""Opens a worker that checks code against stubs."""

_SENTINEL = '__holdfast_check__: int = ""\n'
_CHARACTERS_PER_SECOND = 100_000
"""The least that the processor checks in a second. Code that takes two seconds longer is too complex. The limit is processor time,
not wall time, so that a busy machine rejects nothing that an idle one accepts.
"""
_LIMITS = GuestLimits(seconds=30.0, memory_bytes=64 << 20)
# A worker may die for a reason other than this code.
_ATTEMPTS = 2
_TOO_COMPLEX = (
    "The code could not be checked within the limits on time and memory. Split it: long chains of `and` and `or`, "
    "many branches and deep nesting are expensive to check."
)
_MAX_CODE = 1 << 20
_MAX_SESSIONS = 4
_MAX_USES = 500
_MAX_SHOWN = 8
_ALWAYS_FATAL = frozenset({"invalid-syntax", "unresolved-import"})
_QUOTED = re.compile(r"`([^`]+)`")
# Names that the interpreter has and its type checker does not know.
_MISSED_BY_CHECKER = frozenset(
    [
        "FileExistsError",
        "FileNotFoundError",
        "ImportError",
        "IsADirectoryError",
        "ModuleNotFoundError",
        "NotADirectoryError",
        "PermissionError",
        "UnboundLocalError",
        "UnicodeDecodeError",
        "UnicodeEncodeError",
        "filter",
        "format",
        "getattr",
        "hasattr",
        "map",
        "open",
        "setattr",
        "scandir",
        "walk",
    ]
)


class Rejection(Value):
    """Why some code must not run."""

    text: str
    is_unsupported: bool = False
    """Whether the code may be correct, but uses something that this interpreter does not have."""


class Checker:
    """Checks code for all guests of an engine. Keeps a few sessions, each for one set of tools."""

    def __init__(self, open_worker: OpenWorker) -> None:
        self._open = open_worker
        self._sessions: list[_CheckerSession] = []
        """The least recently used first."""

    async def check(self, code: str, tools: tuple[Tool, ...], names: frozenset[str]) -> Rejection | None:
        """Why this code must not run, in words that a model can act on; None if it may run."""
        if len(code) > _MAX_CODE:
            return Rejection(text=f"SyntaxError: the code is longer than {_MAX_CODE} characters; split it")
        deaths = 0
        while deaths < _ATTEMPTS:
            session = await self._session(tools)
            async with session.lock:
                if session.is_closed:
                    continue
                try:
                    diagnostics = await session.diagnose(code)
                except _Unreadable as unreadable:
                    return unreadable.rejection
                except _TooComplex:
                    await self._drop(session)
                    break
                except (monty.MontyCrashedError, WorkerLost):
                    await self._drop(session)
                    deaths += 1
                    continue
                except BaseException:
                    await self._drop(session)
                    raise
            fatal = [each for each in diagnostics if _is_fatal(each, names, session.classes)]
            return _rejection(fatal, session.groups) if fatal else None
        return Rejection(text=_TOO_COMPLEX)

    async def close(self) -> None:
        """End all workers."""
        for session in list(self._sessions):
            await self._drop(session)

    async def _session(self, tools: tuple[Tool, ...]) -> "_CheckerSession":
        """A free session for these tools: code that takes long to check must not delay others that have the same tools."""
        key = digest([tool.digest for tool in tools])
        for worn in [each for each in self._sessions if each.uses >= _MAX_USES and not each.lock.locked()]:
            await self._drop(worn)
        fitting = [each for each in self._sessions if each.key == key]
        session = next((each for each in fitting if not each.lock.locked()), None)
        if session is None and sum(each.lock.locked() for each in self._sessions) >= _MAX_SESSIONS:
            session = next(iter(fitting), None)  # the maximum number of sessions is busy
        if session is None:
            session = _CheckerSession(self._open, key, tools)
        else:
            self._sessions.remove(session)
        self._sessions.append(session)
        idle = [each for each in self._sessions if not each.lock.locked() and each is not session]
        for each in idle[: max(0, len(self._sessions) - _MAX_SESSIONS)]:
            await self._drop(each)
        return session

    async def _drop(self, session: "_CheckerSession") -> None:
        if session in self._sessions:
            self._sessions.remove(session)
        await session.close()


class _Unreadable(Exception):
    """The code does not parse, or uses syntax that the interpreter does not have."""

    def __init__(self, rejection: Rejection) -> None:
        self.rejection = rejection


class _TooComplex(Exception):
    """Checking the code takes too much time or memory. A second attempt would take the same."""


class _CheckerSession:
    """One checker session, with the stubs of one set of tools."""

    def __init__(self, open_worker: OpenWorker, key: str, tools: tuple[Tool, ...]) -> None:
        self.key = key
        self.lock = asyncio.Lock()
        self.uses = 0
        self.is_closed = False
        self.groups = frozenset(python_name(tool.group) for tool in tools)
        self.classes = frozenset(
            class_name(tool.group) if tool.verb else python_name(tool.name) for tool in tools
        )
        self._stubs = render_stubs(tools)
        self._open = open_worker
        self._worker: Worker | None = None

    async def diagnose(self, code: str) -> list[dict[str, Any]]:
        """The checker's diagnostics of the code."""
        self.uses += 1
        if self._worker is None:
            self._worker = await self._open(_LIMITS, self._stubs)
        worker, seconds = self._worker, _LIMITS.seconds
        worker.allow_computing(2 + (len(self._stubs) + len(code)) // _CHARACTERS_PER_SECOND)
        try:
            snapshot = await worker.turn(worker.session.feed_start(_SENTINEL + code), seconds=seconds)
            while (
                isinstance(snapshot, monty.AsyncFunctionSnapshot) and snapshot.function_name == "import_stubs"
            ):
                snapshot = await worker.turn(snapshot.resume_auto(), seconds=seconds)
        except monty.MontyTypingError as error:
            return list(json.loads(error.display()))[1:]
        except (monty.MontySyntaxError, monty.MontyRuntimeError) as error:
            if isinstance(error.exception(), MemoryError):
                raise _TooComplex from error
            text = _without_sentinel(error.display())
            is_unsupported = isinstance(error.exception(), NotImplementedError)
            raise _Unreadable(Rejection(text=text, is_unsupported=is_unsupported)) from None
        except WorkerTimeout as error:
            raise _TooComplex from error
        # INVARIANT: the sentinel keeps everything from running. An engine that accepts it cannot be trusted.
        raise GuestError(
            "the type checker accepted code that it must reject; this engine version is not usable"
        )

    async def close(self) -> None:
        """Kill the worker. A caller that waits for the lock then takes another session."""
        self.is_closed = True
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.kill()


def _is_fatal(diagnostic: dict[str, Any], names: frozenset[str], classes: frozenset[str]) -> bool:
    rule, message = diagnostic["code"], diagnostic["message"]
    if diagnostic["severity"] != "error":
        return False
    if rule in _ALWAYS_FATAL:
        return True
    quoted = _QUOTED.findall(message)
    if rule == "unresolved-reference":
        return bool(quoted) and quoted[0] not in names and quoted[0] not in _MISSED_BY_CHECKER
    if rule == "unresolved-attribute" and message.startswith("Module "):
        return quoted[-1] not in _MISSED_BY_CHECKER
    return any(name.partition(".")[0] in classes for name in quoted)


def _rejection(diagnostics: list[dict[str, Any]], groups: frozenset[str]) -> Rejection:
    lines = [_line(diagnostic, groups) for diagnostic in diagnostics[:_MAX_SHOWN]]
    if len(diagnostics) > _MAX_SHOWN:
        lines.append(f"... and {len(diagnostics) - _MAX_SHOWN} more")
    return Rejection(
        text="\n".join(lines), is_unsupported=all(_is_missing(each, groups) for each in diagnostics)
    )


def _is_missing(diagnostic: dict[str, Any], groups: frozenset[str]) -> bool:
    """Whether the interpreter lacks a module, a member of a module or a builtin that Python has."""
    name = next(iter(_QUOTED.findall(diagnostic["message"])), "")
    match diagnostic["code"]:
        case "unresolved-import":
            return name not in groups
        case "unresolved-reference":
            return hasattr(builtins, name)
        case "unresolved-attribute":
            return str(diagnostic["message"]).startswith("Module ")
        case _:
            return False


def _line(diagnostic: dict[str, Any], groups: frozenset[str]) -> str:
    message = str(diagnostic["message"])
    if diagnostic["code"] == "unresolved-import":
        name = _QUOTED.findall(message)[-1]
        message += (
            f": `{name}` is already defined, do not import it"
            if name in groups
            else ", which this sandbox does not have"
        )
    return f"line {diagnostic['location']['row'] - 1}: {message}"


def _without_sentinel(text: str) -> str:
    """The traceback with the line numbers of the code, which starts after the sentinel."""
    return re.sub(r"(?<=, line )\d+", lambda found: str(int(found.group()) - 1), text)
