"""The public fake of an engine: runs a list of steps instead of a language, in this process, and keeps the whole contract.

Code is JSON lines, one step each; `script` writes it. A step is an object with one of these keys:

- `call` operation, with `arguments`; `catch: true` turns a refusal or failure into the value `{"error": ...}`
- `value` any JSON: the result of the step
- `print` any JSON: printed to the output
- `fail` text: ends the run with an error
- `spin` true: never ends by itself

`as` stores a step's result in a variable of the guest; `{"$": "name"}` is replaced by it anywhere in a later step. The value of
a run is the result of its last step. A line that is not a step is refused before anything runs.
"""

import asyncio

import msgspec

from holdfast.core import Answer, Failed, Json, JsonObject, Parked, Refused, Returned, Value, encode
from holdfast.guests.contract import Capabilities, Engine, OnCall, Run, RunRequest
from holdfast.guests.signed_snapshot import SnapshotSigner

_CAPABILITIES = Capabilities(
    engine="scripted", version="1", language="json-lines", has_snapshot=True, judges_files=True
)
_TAG = "scripted/1"
_KINDS = frozenset({"call", "value", "print", "fail", "spin"})


def script(*steps: JsonObject) -> str:
    """Code for a scripted guest."""
    return "\n".join(encode(step).decode() for step in steps)


class ScriptedEngine:
    """Creates scripted guests."""

    def __init__(self, *, key: bytes = b"a key for the scripted twin only") -> None:
        self._signer = SnapshotSigner(key)

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def guest(self) -> "ScriptedGuest":
        return ScriptedGuest(signer=self._signer)

    async def close(self) -> None:
        """Nothing to stop."""


class _Frame(Value):
    """The state of a run between two steps."""

    variables: JsonObject
    position: int = 0
    value: Json = None
    printed: str = ""
    calls: int = 0


class ScriptedGuest:
    """Runs steps. Its state is its variables."""

    def __init__(self, *, signer: SnapshotSigner) -> None:
        self._signer = signer
        self._variables: JsonObject = {}
        self._has_run = False

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        return await self._execute(_Frame(variables=dict(self._variables)), None, request, on_call)

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        frame = msgspec.json.decode(self._signer.verify(f"{_TAG} parked", snapshot), type=_Frame)
        return await self._execute(frame, answer, request, on_call)

    async def snapshot(self) -> bytes:
        return self._signer.sign(f"{_TAG} state", encode(self._variables)) if self._has_run else b""

    async def restore(self, state: bytes) -> None:
        self._variables = msgspec.json.decode(self._signer.verify(f"{_TAG} state", state)) if state else {}
        self._has_run = bool(state)

    async def close(self) -> None:
        """Nothing to release."""

    async def _execute(
        self, frame: _Frame, answer: Answer | None, request: RunRequest, on_call: OnCall
    ) -> Run:
        try:
            steps = _parse(request.code)
        except (msgspec.DecodeError, ValueError) as error:
            return Run(status="refused", error=f"SyntaxError: {error}")
        execution = _ScriptExecution(steps, frame, request, on_call)
        run = await execution.run(answer)
        if run.status == "parked":
            signed = self._signer.sign(f"{_TAG} parked", encode(execution.frame()))
            return msgspec.structs.replace(run, snapshot=signed)
        if run.status in ("ok", "error"):
            self._variables, self._has_run = execution.variables, True
        return run


class _Stop(Exception):
    """Ends a run early."""

    def __init__(self, run: Run) -> None:
        self.run = run


class _ScriptExecution:
    """One run of steps, from the step that its frame names."""

    def __init__(self, steps: list[JsonObject], frame: _Frame, request: RunRequest, on_call: OnCall) -> None:
        self.variables = frame.variables
        self._steps = steps
        self._position = frame.position
        self._value = frame.value
        self._printed = frame.printed
        self._calls = frame.calls
        self._limits = request.limits
        self._on_call = on_call

    def frame(self) -> _Frame:
        """The state to resume from."""
        return _Frame(
            variables=self.variables,
            position=self._position,
            value=self._value,
            printed=self._printed,
            calls=self._calls,
        )

    async def run(self, answer: Answer | None) -> Run:
        """Run the remaining steps. `answer` is for the call that the run was parked at."""
        try:
            while self._position < len(self._steps):
                step = self._steps[self._position]
                self._value = await self._step(step, answer)
                answer = None
                if isinstance(name := step.get("as"), str):
                    self.variables[name] = self._value
                self._position += 1
        except _Stop as stop:
            return msgspec.structs.replace(stop.run, printed=self._printed)
        return Run(status="ok", value=self._value, printed=self._printed)

    async def _step(self, step: JsonObject, answer: Answer | None) -> Json:
        if self._limits.steps is not None and self._position >= self._limits.steps:
            raise _Stop(Run(status="limit", error=f"the run took more than {self._limits.steps} steps"))
        if "call" in step:
            return await self._call(step, answer)
        if "print" in step:
            self._print(self._substitute(step["print"]))
            return None
        if "fail" in step:
            raise _Stop(Run(status="error", error=f"RuntimeError: {step['fail']}"))
        if "spin" in step:
            await self._spin()
        return self._substitute(step["value"])

    async def _call(self, step: JsonObject, answer: Answer | None) -> Json:
        if answer is None:
            self._calls += 1
            if self._calls > self._limits.calls:
                raise _Stop(Run(status="limit", error=f"the run made more than {self._limits.calls} calls"))
            arguments = self._substitute(step.get("arguments", {}))
            assert isinstance(arguments, dict)
            answer = await self._on_call(str(step["call"]), arguments)
        match answer:
            case Returned(value=value):
                return value
            case Parked():
                raise _Stop(Run(status="parked"))
            case Refused(reason=reason):
                return self._fail(step, f"PermissionError: {reason}")
            case Failed(error=error, reason=reason):
                return self._fail(step, f"{error}: {reason}")

    def _fail(self, step: JsonObject, text: str) -> Json:
        if step.get("catch"):
            return {"error": text}
        raise _Stop(Run(status="error", error=text))

    def _print(self, value: Json) -> None:
        self._printed += f"{value if isinstance(value, str) else encode(value).decode()}\n"
        if len(self._printed.encode()) > self._limits.output_bytes:
            self._printed = self._printed.encode()[: self._limits.output_bytes].decode(errors="ignore")
            raise _Stop(
                Run(status="limit", error=f"the run printed more than {self._limits.output_bytes} bytes")
            )

    async def _spin(self) -> None:
        await asyncio.sleep(self._limits.seconds)
        raise _Stop(Run(status="limit", error=f"the run took more than {self._limits.seconds:g} seconds"))

    def _substitute(self, value: Json) -> Json:
        """A value with each `{"$": name}` replaced by that variable."""
        if isinstance(value, list):
            return [self._substitute(item) for item in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"$"}:
            name = str(value["$"])
            if name not in self.variables:
                raise _Stop(Run(status="error", error=f"NameError: name {name!r} is not defined"))
            return self.variables[name]
        return {key: self._substitute(item) for key, item in value.items()}


def _parse(code: str) -> list[JsonObject]:
    steps = [msgspec.json.decode(line, type=dict[str, Json]) for line in code.splitlines() if line.strip()]
    for number, step in enumerate(steps, start=1):
        if len(_KINDS & step.keys()) != 1 or not isinstance(step.get("arguments", {}), dict):
            raise ValueError(f"step {number} needs exactly one of {', '.join(sorted(_KINDS))}")
    return steps


_: type[Engine] = ScriptedEngine
