"""The child process that holds a local model, as its parent sees it: started on demand, asked one thing at a time."""

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
_LINE_LIMIT = 16_000_000
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
"""All of our environment that the child gets to see. No key is among it."""


class LocalProcess:
    """One model in memory. Ends with `close`, or when we end: its input closes then."""

    def __init__(
        self, path: Path, *, context_tokens: int, threads: int, engine_path: Path | None = None
    ) -> None:
        self._path, self._context_tokens, self._threads = path, context_tokens, threads
        self._engine_path = engine_path
        self._process: asyncio.subprocess.Process | None = None
        self._number = 0
        self._lock = asyncio.Lock()

    async def chunks(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """The pieces of the reply to a request. Leaving the loop early tells the child to stop."""
        async with self._lock:
            process = await self._running()
            self._number += 1
            number = self._number
            await self._send(process, {"id": number, "ask": request})
            is_done = False
            try:
                while not is_done:
                    message = await self._receive(process)
                    if message.get("id") != number:
                        continue  # the rest of a reply that was given up
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

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self.close()
        self._check()
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
            limit=_LINE_LIMIT,
        )
        self._process = process
        try:
            first = await self._receive(process)
        except BaseException:
            await self.close()  # half loaded is not running
            raise
        if "ready" not in first:
            await self.close()
            raise ModelUnavailable(
                f"{str(self._path)!r} could not be loaded: {first.get('failed')}",
                hint="check that it is a GGUF file and that there is memory for it",
            )
        return process

    def _check(self) -> None:
        if self._engine_path is None and importlib.util.find_spec("xllamacpp") is None:
            raise ModelMissing(
                "local models need an engine that is not installed",
                hint="holdfast doctor says how to install it",
            )
        if not self._path.is_file():
            raise ModelMissing(
                f"there is no file {str(self._path)!r}",
                hint="give the path of a GGUF file, or `holdfast model install`",
            )

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        return kept | ({"PYTHONPATH": str(self._engine_path)} if self._engine_path else {})

    async def _send(self, process: asyncio.subprocess.Process, message: JsonObject) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(msgspec.json.encode(message) + b"\n")
            await process.stdin.drain()
        except (ConnectionError, RuntimeError):
            raise await self._gone(process) from None

    async def _receive(self, process: asyncio.subprocess.Process) -> JsonObject:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            raise await self._gone(process)
        return msgspec.json.decode(line, type=dict)

    async def _gone(self, process: asyncio.subprocess.Process) -> ModelUnavailable:
        # Its output has ended, so it is about to; a kill at this moment would race with asyncio for its exit code.
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await self.close()
        return ModelUnavailable(
            f"the process of the local model ended (code {process.returncode})",
            hint="ask again to start it anew; if it ends again, there may be too little memory",
        )
