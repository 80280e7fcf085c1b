"""The interpreters of the system engine: processes in the session's command sandbox, started and ended by judged calls."""

from collections.abc import Collection

from holdfast.commands import CommandToolset, ConnectedProcess
from holdfast.core import Answer, Failed, Returned
from holdfast.guests import Interpreter, InterpreterEnd, InterpreterGone, OnCall


class SessionInterpreters:
    """Starts an interpreter by `shell.python` and ends it by `shell.stop`, which settles what it changed."""

    def __init__(self) -> None:
        self._toolset: CommandToolset | None = None
        self._open: dict[str, _ConnectedInterpreter] = {}

    def connect(self, toolset: CommandToolset) -> None:
        """Use the programs of this session from now on."""
        self._toolset = toolset

    async def start(self, code: str, on_call: OnCall) -> Interpreter | Answer:
        """Start an interpreter. Raises InterpreterGone if the call is on record, and its process is not there."""
        if self._toolset is None:
            return Failed(error="CommandError", reason="this session cannot run programs")
        answer = await on_call("shell.python", {"code": code})
        if not isinstance(answer, Returned):
            return answer
        process = str(answer.value["process"]) if isinstance(answer.value, dict) else ""
        connected = self._toolset.connected.get(process)
        if connected is None:
            raise InterpreterGone
        if process not in self._open or self._open[process].connected is not connected:
            self._open[process] = _ConnectedInterpreter(connected)
        return self._open[process]

    async def end(
        self, interpreter: Interpreter, on_call: OnCall, *, is_dead: bool, unfinished: Collection[str] = ()
    ) -> Answer:
        """End an interpreter and settle what it changed; drop that if it is dead, and what it did not finish."""
        process = self._process(interpreter)
        connected = self._open[process].connected
        connected.is_dead, connected.unfinished = is_dead, frozenset(unfinished)
        answer = await on_call("shell.stop", {"process": process})
        if isinstance(answer, Returned):
            self._open.pop(process, None)
        return answer

    def ended(self, answer: Answer) -> InterpreterEnd:
        """What the answer to `end` says."""
        if not isinstance(answer, Returned) or not isinstance(answer.value, dict):
            return InterpreterEnd()
        refused = answer.value.get("refused")
        return InterpreterEnd(
            signal=str(answer.value.get("signal", "")),
            stopped=str(answer.value.get("stopped", "")),
            refused=tuple(
                f"{each['path']} was not changed: {each.get('because', '')}"
                for each in (refused if isinstance(refused, list) else ())
                if isinstance(each, dict) and "path" in each
            ),
        )

    async def kill(self, interpreter: Interpreter) -> None:
        """End an interpreter and drop what it changed."""
        process = self._process(interpreter)
        self._open.pop(process, None)
        if self._toolset is not None:
            await self._toolset.kill_interpreter(process)

    def _process(self, interpreter: Interpreter) -> str:
        assert isinstance(interpreter, _ConnectedInterpreter)
        return interpreter.connected.id


class _ConnectedInterpreter:
    """A connected process as the engine sees it."""

    def __init__(self, connected: ConnectedProcess) -> None:
        self.connected = connected

    async def send(self, data: bytes) -> None:
        try:
            await self.connected.send(data)
        except OSError as error:
            raise InterpreterGone("the interpreter has ended") from error

    async def read(self, length: int) -> bytes | bytearray:
        try:
            return await self.connected.read(length)
        except (EOFError, OSError) as error:
            raise InterpreterGone("the code ended its own interpreter (os._exit)") from error

    @property
    def printed(self) -> bytes:
        return self.connected.printed
