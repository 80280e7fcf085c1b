"""Reading and writing large messages on a stream with one copy of them in memory."""

import asyncio

_PIECE_BYTES = 256 << 10


async def read_exactly(reader: asyncio.StreamReader, length: int) -> bytearray:
    """Exactly this many bytes. Raises IncompleteReadError.

    `StreamReader.readexactly` collects them in its own buffer and copies them, which takes twice the memory.
    """
    content = bytearray(length)
    at = 0
    with memoryview(content) as view:
        while at < length:
            piece = await reader.read(min(_PIECE_BYTES, length - at))
            if not piece:
                raise asyncio.IncompleteReadError(bytes(view[: min(at, _PIECE_BYTES)]), length)
            view[at : at + len(piece)] = piece
            at += len(piece)
    return content


async def write_all(writer: asyncio.StreamWriter, *parts: bytes) -> None:
    """Write these bytes, each piece once the one before has left. Raises ConnectionError."""
    for part in parts:
        with memoryview(part) as view:
            for at in range(0, len(part), _PIECE_BYTES):
                writer.write(view[at : at + _PIECE_BYTES])
                await writer.drain()
