"""The output of a program: read as it arrives, without ever blocking the event loop."""

import asyncio
import contextlib
import errno
import os

from holdfast.commands.contract import OnOutput

_CHUNK = 256 << 10
_MAX_DRAINED = 4 << 20
"""More than any pipe holds: what is left after the program's end, even if somebody keeps writing."""


class OutputReader:
    """Reads the host's end of a pipe or terminal until it ends or is closed."""

    def __init__(self, descriptor: int, on_output: OnOutput) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._on_output = on_output
        self._is_open = True
        self.total_bytes = 0
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def finish(self) -> None:
        """Read what is still there and close. Call it when the program has ended."""
        drained = 0
        while self._is_open and drained < _MAX_DRAINED:
            count = self._read()
            if count == 0:
                break
            drained += count
        self.close()

    def close(self) -> None:
        """Close without reading."""
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)

    def _read(self) -> int:
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return 0
        except OSError as error:
            # A terminal ends with EIO when its last user closes it.
            if error.errno != errno.EIO:
                self.close()
                raise
            data = b""
        if not data:
            self.close()
            return 0
        self.total_bytes += len(data)
        self._on_output(data)
        return len(data)


class InputWriter:
    """Writes to the standard input of a program; what does not fit waits."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._is_open = True
        self._lock = asyncio.Lock()

    async def write(self, data: bytes) -> None:
        """Write all of it. Raises BrokenPipeError if the program has closed its input."""
        async with self._lock:
            view = memoryview(data)
            while view:
                if not self._is_open:
                    raise BrokenPipeError(errno.EPIPE, "the program has ended")
                try:
                    view = view[os.write(self._descriptor, view) :]
                except BlockingIOError:
                    await self._writable()

    def close(self) -> None:
        """Close the input; the program reads its end."""
        if self._is_open:
            self._is_open = False
            with contextlib.suppress(OSError):
                os.close(self._descriptor)

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_writer(self._descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_writer(self._descriptor)
