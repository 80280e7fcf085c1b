"""File notifications: inotify as an asyncio queue of file names, or as a callback.

Written by hand because the available libraries either poll in a thread, a thousand wake-ups a second for an answer within
milliseconds, or are a dependency for these three system calls.
"""

import asyncio
import ctypes
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path

_CLOSE_WRITE, _MOVED_TO, _OVERFLOW = 0x8, 0x80, 0x4000
COMPLETED = _CLOSE_WRITE | _MOVED_TO
"""A file was written and closed, or moved into the folder."""
MODIFIED = 0x2
"""A file was written, and may be written again."""
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_HEADER = struct.Struct("iIII")


class FileWatch:
    """Names of files in a folder to which something happened. Close it when done."""

    def __init__(
        self,
        folder: Path,
        *,
        events: int = COMPLETED,
        on_name: Callable[[str | None], None] | None = None,
    ) -> None:
        self._names: asyncio.Queue[str | None] = asyncio.Queue()
        self._on_name = on_name or self._names.put_nowait
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = libc.inotify_init1(_NONBLOCK_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        if libc.inotify_add_watch(self._descriptor, os.fsencode(folder), events) < 0:
            number = ctypes.get_errno()
            os.close(self._descriptor)
            raise OSError(number, os.strerror(number), str(folder))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._read)

    async def next_name(self) -> str | None:
        """The next file; None if the kernel's queue overflowed and the folder must be listed."""
        return await self._names.get()

    def close(self) -> None:
        """Stop watching. Idempotent."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            # In a thread: the kernel lets go of a watch after 20 to 50 ms, and everything else would wait with it.
            threading.Thread(target=os.close, args=(self._descriptor,), daemon=True).start()
            self._descriptor = -1

    def _read(self) -> None:
        try:
            content = os.read(self._descriptor, 65536)
        except BlockingIOError:
            return
        offset = 0
        while offset < len(content):
            _, mask, _, length = _HEADER.unpack_from(content, offset)
            offset += _HEADER.size
            name = os.fsdecode(content[offset : offset + length].rstrip(b"\0"))
            self._on_name(None if mask & _OVERFLOW else name)
            offset += length
