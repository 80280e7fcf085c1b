"""The parent's side of the child process that runs a local model: started on demand, one request at a time."""

import asyncio
import importlib.util
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec

from holdfast.core import JsonObject
from holdfast.core.errors import ModelMissing, ModelUnavailable

_CHILD = Path(__file__).with_name("child_main.py")
_MAX_LINE_BYTES = 16_000_000
_INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
"""The only environment variables that the child inherits. None of them holds a key."""


class LocalProcess:
    """A child process with one model in memory. It ends with `close`, or when this process ends and closes its stdin."""

    def __init__(
        self, path: Path, *, context_tokens: int, threads: int, engine_path: Path | None = None
    ) -> None:
        self._path, self._context_tokens, self._threads = path, context_tokens, threads
        self._engine_path = engine_path
        self._process: asyncio.subprocess.Process | None = None
        self._number = 0
        self._lock = asyncio.Lock()

    async def chunks(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """The pieces of the reply to a request. Leaving the loop early cancels the request."""
        async with self._lock:
            process = await self._start()
            self._number += 1
            number = self._number
            await self._send(process, {"id": number, "ask": request})
            is_done = False
            try:
                while not is_done:
                    message = await self._receive(process)
                    if message.get("id") != number:
                        continue  # the rest of a cancelled reply
                    is_done = "done" in message
                    chunk = message.get("chunk")
                    if isinstance(chunk, dict):
                        yield chunk
            finally:
                if not is_done and process.returncode is None:
                    await self._send(process, {"cancel": number})

    async def close(self) -> None:
        """End the child. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()

    async def _start(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self.close()
        self._check_installed()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-s",
            "-P",
            str(_CHILD),
            str(self._path),
            str(self._context_tokens),
            str(self._threads),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=self._environment(),
            limit=_MAX_LINE_BYTES,
        )
        self._process = process
        try:
            first = await self._receive(process)
        except BaseException:
            await self.close()  # a process that has not finished loading is of no use
            raise
        if "ready" not in first:
            await self.close()
            raise ModelUnavailable(
                f"{str(self._path)!r} could not be loaded: {first.get('failed')}",
                hint="check that it is a GGUF file and that enough memory is free",
            )
        return process

    def _check_installed(self) -> None:
        if self._engine_path is None and importlib.util.find_spec("xllamacpp") is None:
            raise ModelMissing(
                "local models need the engine xllamacpp, which is not installed",
                hint="holdfast doctor shows how to install it",
            )
        if not self._path.is_file():
            raise ModelMissing(
                f"there is no file {str(self._path)!r}",
                hint="give the path of a GGUF file: --model local:/path/to/model.gguf",
            )

    def _environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        return inherited | ({"PYTHONPATH": str(self._engine_path)} if self._engine_path else {})

    async def _send(self, process: asyncio.subprocess.Process, message: JsonObject) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(msgspec.json.encode(message) + b"\n")
            await process.stdin.drain()
        except (ConnectionError, RuntimeError):
            raise await self._exited(process) from None

    async def _receive(self, process: asyncio.subprocess.Process) -> JsonObject:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            raise await self._exited(process)
        return msgspec.json.decode(line, type=dict)

    async def _exited(self, process: asyncio.subprocess.Process) -> ModelUnavailable:
        # Its stdout has ended, so it is about to exit. Killing it here would race with asyncio for its exit code.
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await self.close()
        return ModelUnavailable(
            f"the process of the local model ended (code {process.returncode})",
            hint="send the message again to restart it; if it ends again, there may not be enough memory",
        )
