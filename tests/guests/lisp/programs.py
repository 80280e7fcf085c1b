"""Helpers that run Lisp: a guest, and a host that answers its calls from a table and records them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holdfast.core import Answer, Json, JsonObject, Refused, Returned, Tool
from holdfast.guests.contract import Guest, GuestLimits, Run, RunRequest
from holdfast.guests.lisp import LispEngine
from holdfast.guests.lisp.host_calls import LANGUAGE

KEY = b"a key for tests, 32 bytes long.."


@dataclass
class Host:
    """Allows language features, serves files from `files` and other operations from `answers`, and refuses the rest."""

    files: dict[str, str] = field(default_factory=dict)
    answers: Mapping[str, Callable[[JsonObject], Json] | Answer] = field(default_factory=dict)
    answer_functions: Mapping[str, Callable[[JsonObject], Answer]] = field(default_factory=dict)
    """Operations whose answer depends on their arguments."""
    refused: frozenset[str] = frozenset()
    calls: list[tuple[str, JsonObject]] = field(default_factory=list)

    async def __call__(self, operation: str, arguments: JsonObject) -> Answer:
        self.calls.append((operation, arguments))
        if operation in self.refused:
            return Refused(reason=f"Operation not allowed: {operation}", rule="allowed-operations")
        if operation in self.answer_functions:
            return self.answer_functions[operation](arguments)
        answer = self.answers.get(operation)
        if answer is not None:
            return Returned(value=answer(arguments)) if callable(answer) else answer
        if operation in LANGUAGE:
            return Returned()
        if operation == "world.read" and arguments["path"] in self.files:
            return Returned(value=self.files[str(arguments["path"])])
        if operation == "world.write":
            self.files[str(arguments["path"])] = str(arguments["content"])
            return Returned()
        if operation == "world.exists":
            return Returned(value=arguments["path"] in self.files)
        if operation == "world.list":
            return Returned(value=list[Json](sorted(self.files)))
        if operation == "world.fingerprint":
            if "path" in arguments:
                return Returned(value=f"fp {self.files.get(str(arguments['path']), '')}")
            return Returned(value=f"fp {sorted(self.files.items())}")
        return Refused(reason=f"Operation not allowed: {operation}", rule="unknown")

    def count(self, operation: str) -> int:
        """How often an operation was called."""
        return sum(called == operation for called, _ in self.calls)


def new_guest(*, memo_capacity: int = 100) -> Guest:
    """A guest that has not run anything."""
    return LispEngine(key=KEY, memo_capacity=memo_capacity).guest()


async def run(
    code: str,
    host: Host | None = None,
    *,
    guest: Guest | None = None,
    limits: GuestLimits | None = None,
    tools: tuple[Tool, ...] = (),
    seed: int = 0,
    now_ms: int = 0,
) -> Run:
    """Run a program to its end."""
    request = RunRequest(code=code, limits=limits or GuestLimits(), tools=tools, seed=seed, now_ms=now_ms)
    return await (guest or new_guest()).run(request, host or Host())


async def value(code: str, host: Host | None = None, *, guest: Guest | None = None) -> Json:
    """The value of a program that must succeed."""
    ended = await run(code, host, guest=guest)
    assert ended.status == "ok", ended.error
    return ended.value
