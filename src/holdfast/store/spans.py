"""Parts of open files, read and written to their last byte: one system call may move only some of them."""

import os


def read_span(descriptor: int, start: int, length: int) -> bytes:
    """What a file has of a part of it; the position of the descriptor stays where it is."""
    pieces: list[bytes] = []
    while length > 0 and (piece := os.pread(descriptor, length, start)):
        pieces.append(piece)
        start += len(piece)
        length -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def write_span(descriptor: int, start: int, content: bytes) -> None:
    """Put bytes at a place in a file."""
    rest = memoryview(content)
    while rest:
        written = os.pwrite(descriptor, rest, start)
        start += written
        rest = rest[written:]
