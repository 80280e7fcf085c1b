"""Interpreters of the system engine in a command sandbox of their own, without a session around it."""

import socket
from collections.abc import Collection
from pathlib import Path

import pytest
from tests.installed_programs import cache_folder

from holdfast.commands import CommandRequest, CommandSandbox, ConnectedProcess, open_sandbox, probe_sandbox
from holdfast.commands.command_output import CommandOutput
from holdfast.core import Answer, Returned
from holdfast.guests import (
    Interpreter,
    InterpreterEnd,
    InterpreterGone,
    OnCall,
    SnapshotSigner,
    interpreter_argv,
)
from holdfast.guests.system import SystemEngine


class SandboxInterpreters:
    """Starts interpreters without asking a gate, and opens the sandbox with the first one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sandbox: CommandSandbox | None = None

    async def start(self, code: str, on_call: OnCall) -> Interpreter | Answer:
        sandbox = await self._open()
        await sandbox.show(())
        output = CommandOutput(shown_bytes=1000)
        ours, theirs = socket.socketpair()
        with theirs:
            request = CommandRequest(argv=interpreter_argv(), environment={})
            process = await sandbox.start(request, name="code", on_output=output.add, channel=theirs)
        return _Connected(await ConnectedProcess.open(process, ours, output))

    async def end(
        self, interpreter: Interpreter, on_call: OnCall, *, is_dead: bool, unfinished: Collection[str] = ()
    ) -> Answer:
        outcome = await (await self._open()).stop(_id(interpreter))
        _process(interpreter).close()
        return Returned(value={"signal": outcome.signal})

    def ended(self, answer: Answer) -> InterpreterEnd:
        assert isinstance(answer, Returned)
        assert isinstance(answer.value, dict)
        return InterpreterEnd(signal=str(answer.value["signal"]))

    async def kill(self, interpreter: Interpreter) -> None:
        sandbox = await self._open()
        if any(each.id == _id(interpreter) for each in sandbox.processes()):
            await sandbox.stop(_id(interpreter))
            _process(interpreter).close()

    async def close(self) -> None:
        if self._sandbox is not None:
            await self._sandbox.close()

    async def _open(self) -> CommandSandbox:
        if self._sandbox is None:
            workspace = self._folder / "workspace"
            workspace.mkdir(exist_ok=True)
            status = await probe_sandbox(cache_folder("sandbox"))
            if status.tier != "full":
                pytest.skip(f"no full sandbox stands here: {status.missing}")
            self._sandbox = await open_sandbox(workspace, self._folder / "state", status=status)
        return self._sandbox


class _Connected:
    def __init__(self, process: ConnectedProcess) -> None:
        self.process = process

    async def send(self, data: bytes) -> None:
        try:
            await self.process.send(data)
        except OSError as error:
            raise InterpreterGone from error

    async def read(self, length: int) -> bytes | bytearray:
        try:
            return await self.process.read(length)
        except (EOFError, OSError) as error:
            raise InterpreterGone from error

    @property
    def printed(self) -> bytes:
        return self.process.printed


def _process(interpreter: Interpreter) -> ConnectedProcess:
    assert isinstance(interpreter, _Connected)
    return interpreter.process


def _id(interpreter: Interpreter) -> str:
    return _process(interpreter).id


class OwnSandboxEngine(SystemEngine):
    """The system engine with a sandbox of its own."""

    def __init__(self, folder: Path, *, key: bytes) -> None:
        self._own = SandboxInterpreters(folder)
        super().__init__(signer=SnapshotSigner(key), interpreters=self._own)

    async def close(self) -> None:
        await super().close()
        await self._own.close()
