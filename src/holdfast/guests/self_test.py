"""A short self-test of an installed engine: it runs code, and its confinement holds."""

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
    """One check of the self-test and its result."""

    name: str
    is_passed: bool
    seen: str = ""
    """What happened instead, if it did not pass."""


async def self_test(engine: Engine) -> tuple[Check, ...]:
    """Test an engine in well under a second. Empty for a language without a test."""
    programs = _PROGRAMS.get(engine.capabilities.language, {})
    guest, other = engine.guest(), engine.guest()
    try:
        return tuple(
            [await _check(name, programs[name], guest, other) for name in _RUNNERS if name in programs]
        )
    finally:
        await guest.close()
        await other.close()


_Runner = Callable[[str, Guest, Guest], Awaitable[Run]]


async def _check(name: str, code: str, guest: Guest, other: Guest) -> Check:
    status, value = _EXPECTED[name]
    try:
        run = await _RUNNERS[name](code, guest, other)
    except HoldfastError as error:
        return Check(name=_TITLES[name], is_passed=False, seen=f"{error.code}: {error}")
    is_passed = run.status == status and (status != "ok" or run.value == value)
    seen = "" if is_passed else f"{run.status}: {run.error or run.value}"[:500]
    return Check(name=_TITLES[name], is_passed=is_passed, seen=seen)


async def _run(code: str, guest: Guest, _other: Guest) -> Run:
    return await guest.run(RunRequest(code=code, tools=(_ECHO,)), _answer)


async def _spin(code: str, guest: Guest, _other: Guest) -> Run:
    limits = GuestLimits(seconds=_SPIN_SECONDS, wall_seconds=5)
    return await guest.run(RunRequest(code=code, limits=limits), _answer)


async def _run_in_other(code: str, guest: Guest, other: Guest) -> Run:
    await other.restore(await guest.snapshot())
    return await other.run(RunRequest(code=code), _answer)


async def _answer(operation: str, arguments: JsonObject) -> Answer:
    if operation == _ECHO.name:
        return Returned(value=arguments.get("text"))
    return Refused(reason="a self-test answers no other call", rule="self-test")


_RUNNERS: dict[str, _Runner] = {
    "value": _run,
    "sets": _run,
    "reads": _run_in_other,
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
    "sets": "sets a variable",
    "reads": "restores variables from a snapshot",
    "calls": "passes calls to the host and returns their values",
    "environment": "sees no environment",
    "outside": "reads nothing outside",
    "spins": "stops code that never ends",
}
