"""A background process that speaks with the host over a socket, which is its standard input."""

import asyncio
import socket

from holdfast.commands.command_output import CommandOutput
from holdfast.process.stream_reads import read_exactly, write_all


class ConnectedProcess:
    """The host's end of the socket, and what the process has printed."""

    def __init__(
        self, id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, output: CommandOutput
    ) -> None:
        self.id = id
        self._reader = reader
        self._writer = writer
        self._output = output
        self.is_dead = False
        """Whether it did not come to its end: a file that it changed may be half-written, and is dropped."""
        self.unfinished: frozenset[str] = frozenset()
        """Files that it had not closed when its code died. They are dropped, what else it changed is not."""

    @classmethod
    async def open(cls, id: str, connection: socket.socket, output: CommandOutput) -> "ConnectedProcess":
        """Take over the host's end of the socket of a process."""
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        return cls(id, reader, writer, output)

    async def send(self, data: bytes) -> None:
        """Write to the process. Raises ConnectionError if it is gone."""
        await write_all(self._writer, data)

    async def read(self, length: int) -> bytes | bytearray:
        """Read exactly this many bytes. Raises EOFError or OSError if the process is gone."""
        return await read_exactly(self._reader, length)

    @property
    def printed(self) -> bytes:
        """What it has printed so far, up to a limit."""
        return self._output.kept

    def close(self) -> None:
        """Close the socket."""
        self._writer.close()
