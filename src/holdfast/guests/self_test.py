"""A short examination of an engine as it is installed here: does it run, and do its walls hold."""

from collections.abc import Awaitable, Callable

from holdfast.core import Answer, Json, JsonObject, Refused, Returned, Tool, Value
from holdfast.core.errors import HoldfastError
from holdfast.guests.contract import Engine, Guest, GuestLimits, Run, RunRequest

_ECHO = Tool(name="echo.say", parameters={"properties": {"text": {"type": "string"}}, "required": ["text"]})
_SPIN_SECONDS = 0.2
_PROGRAMS: dict[str, dict[str, str]] = {
    "python": {
        "value": "6 * 7",
        "sets": "x = 41",
        "reads": "x",
        "calls": "echo.say(text='hello')",
        "spins": "while True: pass",
        "environment": "import os\nlen(dict(os.environ))",
        "outside": "open('/etc/passwd').read()",
    },
    "lisp": {
        "value": "(* 6 7)",
        "sets": "(define x 41)",
        "reads": "x",
        "calls": '(echo/say :text "hello")',
        "spins": "(let loop () (loop))",
        "outside": '(world/read "/etc/passwd")',
    },
}


class Check(Value):
    """One thing that was tried."""

    name: str
    is_passed: bool
    seen: str = ""
    """What was seen instead, where it did not pass."""


async def self_test(engine: Engine) -> tuple[Check, ...]:
    """Try an engine; takes well under a second. Empty for a language that has no test."""
    programs = _PROGRAMS.get(engine.capabilities.language, {})
    guest, other = engine.guest(), engine.guest()
    try:
        return tuple(
            [
                await _tried(name, examine, programs[name], guest, other)
                for name, examine in _examined(programs)
            ]
        )
    finally:
        await guest.close()
        await other.close()


Examine = Callable[[str, Guest, Guest], Awaitable[Run]]


def _examined(programs: dict[str, str]) -> list[tuple[str, Examine]]:
    return [(name, examine) for name, examine in _EXAMINATIONS.items() if name in programs]


async def _tried(name: str, examine: Examine, code: str, guest: Guest, other: Guest) -> Check:
    status, value = _EXPECTED[name]
    try:
        ended = await examine(code, guest, other)
    except HoldfastError as error:
        return Check(name=_TITLES[name], is_passed=False, seen=f"{error.code}: {error}")
    is_passed = ended.status == status and (status != "ok" or ended.value == value)
    seen = "" if is_passed else f"{ended.status}: {ended.error or ended.value}"[:500]
    return Check(name=_TITLES[name], is_passed=is_passed, seen=seen)


async def _run(code: str, guest: Guest, _other: Guest) -> Run:
    return await guest.run(RunRequest(code=code, tools=(_ECHO,)), _answer)


async def _spin(code: str, guest: Guest, _other: Guest) -> Run:
    limits = GuestLimits(seconds=_SPIN_SECONDS, wall_seconds=5)
    return await guest.run(RunRequest(code=code, limits=limits), _answer)


async def _carry_over(code: str, guest: Guest, other: Guest) -> Run:
    await other.restore(await guest.snapshot())
    return await other.run(RunRequest(code=code), _answer)


async def _answer(operation: str, arguments: JsonObject) -> Answer:
    if operation == _ECHO.name:
        return Returned(value=arguments.get("text"))
    return Refused(reason="nothing else is answered in a self-test", rule="self-test")


_EXAMINATIONS: dict[str, Examine] = {
    "value": _run,
    "sets": _run,
    "reads": _carry_over,
    "calls": _run,
    "environment": _run,
    "outside": _run,
    "spins": _spin,
}
_EXPECTED: dict[str, tuple[str, Json]] = {
    "value": ("ok", 42),
    "sets": ("ok", None),
    "reads": ("ok", 41),
    "calls": ("ok", "hello"),
    "environment": ("ok", 0),
    "outside": ("error", None),
    "spins": ("limit", None),
}
_TITLES = {
    "value": "runs code",
    "sets": "takes a variable",
    "reads": "carries variables over by a snapshot",
    "calls": "hands calls to the host and their values back",
    "environment": "sees no environment",
    "outside": "reads nothing outside",
    "spins": "is stopped when it never ends",
}
