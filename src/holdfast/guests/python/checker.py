"""The check before a run: does the code parse, are its imports there, does it call the tools as they want to be called.

The interpreter checks types only as part of running. So the code is given to a session of its own behind a first line that
cannot pass: the check always fails, nothing ever runs there, and every complaint but the first is about the code. What
Python itself would let pass (a wrong annotation on a variable) is let pass.
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

Open = Callable[[GuestLimits, str], Awaitable[Worker]]
"""Opens a worker that checks against stubs."""

_SENTINEL = '__holdfast_check__: int = ""\n'
_COMPUTED_CHARACTERS = 100_000
"""What the processor checks in a second at the least; code that takes two more than that is hard by its shape. Not a time
on the clock, so that a busy machine refuses nothing that a quiet one takes.
"""
_LIMITS = GuestLimits(seconds=30.0, memory_bytes=64 << 20)
# A worker may have died for another reason than this code.
_ATTEMPTS = 2
_TOO_HARD = (
    "The code could not be checked: that takes too much time or memory. Split it; long chains of `and` and `or`, "
    "many branches and deep nesting are what costs."
)
_MAX_CODE = 1 << 20
_MAX_SESSIONS = 4
_MAX_USES = 500
_MAX_SHOWN = 8
_ALWAYS_FATAL = frozenset({"invalid-syntax", "unresolved-import"})
_QUOTED = re.compile(r"`([^`]+)`")
# What the interpreter has and its type checker has never heard of.
_THERE = frozenset(
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


class Complaint(Value):
    """What speaks against running some code."""

    text: str
    is_unsupported: bool = False
    """The code may be fine, but this interpreter does not have what it uses."""


class Checker:
    """Checks code for all guests of an engine; keeps a few sessions, each for a set of tools."""

    def __init__(self, open_worker: Open) -> None:
        self._open = open_worker
        self._desks: list[_Desk] = []
        """The least recently used first."""

    async def complaint(self, code: str, tools: tuple[Tool, ...], names: frozenset[str]) -> Complaint | None:
        """Why this code is not to run, in words that a model can act on; None where nothing speaks against it."""
        if len(code) > _MAX_CODE:
            return Complaint(text=f"SyntaxError: the code is longer than {_MAX_CODE} characters; split it")
        deaths = 0
        while deaths < _ATTEMPTS:
            desk = await self._desk(tools)
            async with desk.lock:
                if desk.is_closed:
                    continue
                try:
                    diagnostics = await desk.examine(code)
                except _Unreadable as unreadable:
                    return unreadable.complaint
                except _TooHard:
                    await self._drop(desk)
                    break
                except (monty.MontyCrashedError, WorkerLost):
                    await self._drop(desk)
                    deaths += 1
                    continue
                except BaseException:
                    await self._drop(desk)
                    raise
            fatal = [each for each in diagnostics if _is_fatal(each, names, desk.classes)]
            return _complaint(fatal, desk.groups) if fatal else None
        return Complaint(text=_TOO_HARD)

    async def close(self) -> None:
        """Give all workers back."""
        for desk in list(self._desks):
            await self._drop(desk)

    async def _desk(self, tools: tuple[Tool, ...]) -> "_Desk":
        """One that is free: code that takes long to check is not to hold up other sessions, which have the same tools."""
        key = digest([tool.digest for tool in tools])
        for worn in [each for each in self._desks if each.uses >= _MAX_USES and not each.lock.locked()]:
            await self._drop(worn)
        fitting = [each for each in self._desks if each.key == key]
        desk = next((each for each in fitting if not each.lock.locked()), None)
        if desk is None and sum(each.lock.locked() for each in self._desks) >= _MAX_SESSIONS:
            desk = next(iter(fitting), None)  # as many work as there may be
        if desk is None:
            desk = _Desk(self._open, key, tools)
        else:
            self._desks.remove(desk)
        self._desks.append(desk)
        idle = [each for each in self._desks if not each.lock.locked() and each is not desk]
        for each in idle[: max(0, len(self._desks) - _MAX_SESSIONS)]:
            await self._drop(each)
        return desk

    async def _drop(self, desk: "_Desk") -> None:
        if desk in self._desks:
            self._desks.remove(desk)
        await desk.close()


class _Unreadable(Exception):
    """The code does not parse, or uses what the interpreter does not have."""

    def __init__(self, complaint: Complaint) -> None:
        self.complaint = complaint


class _TooHard(Exception):
    """The code takes more to check than it may. No accident: a second check would take the same."""


class _Desk:
    """One checking session: the stubs of one set of tools."""

    def __init__(self, open_worker: Open, key: str, tools: tuple[Tool, ...]) -> None:
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

    async def examine(self, code: str) -> list[dict[str, Any]]:
        """The checker's diagnostics of the code."""
        self.uses += 1
        if self._worker is None:
            self._worker = await self._open(_LIMITS, self._stubs)
        worker, seconds = self._worker, _LIMITS.seconds
        worker.allow_computing(2 + (len(self._stubs) + len(code)) // _COMPUTED_CHARACTERS)
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
                raise _TooHard from error
            text = _without_sentinel(error.display())
            is_unsupported = isinstance(error.exception(), NotImplementedError)
            raise _Unreadable(Complaint(text=text, is_unsupported=is_unsupported)) from None
        except WorkerTimeout as error:
            raise _TooHard from error
        # INVARIANT: the sentinel keeps everything from running. An engine that lets it pass is not to be trusted.
        raise GuestError("the type checker let pass what cannot pass; this engine version is not usable")

    async def close(self) -> None:
        """Give the worker back; whoever waits for the lock takes another desk."""
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
        return bool(quoted) and quoted[0] not in names and quoted[0] not in _THERE
    if rule == "unresolved-attribute" and message.startswith("Module "):
        return quoted[-1] not in _THERE
    return any(name.partition(".")[0] in classes for name in quoted)


def _complaint(diagnostics: list[dict[str, Any]], groups: frozenset[str]) -> Complaint:
    lines = [_line(diagnostic, groups) for diagnostic in diagnostics[:_MAX_SHOWN]]
    if len(diagnostics) > _MAX_SHOWN:
        lines.append(f"... and {len(diagnostics) - _MAX_SHOWN} more")
    return Complaint(
        text="\n".join(lines), is_unsupported=all(_is_missing(each, groups) for each in diagnostics)
    )


def _is_missing(diagnostic: dict[str, Any], groups: frozenset[str]) -> bool:
    """Whether the interpreter lacks a module, a part of one or a builtin that Python has."""
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
            f": `{name}` is there already, do not import it"
            if name in groups
            else ", which this sandbox does not have"
        )
    return f"line {diagnostic['location']['row'] - 1}: {message}"


def _without_sentinel(text: str) -> str:
    """A traceback of the code behind the sentinel, with its own line numbers."""
    return re.sub(r"(?<=, line )\d+", lambda found: str(int(found.group()) - 1), text)
