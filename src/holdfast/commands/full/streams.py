"""The standard streams of a program: made for one program, the host's ends apart from the program's."""

import os
import socket
from fcntl import ioctl
from struct import pack
from termios import TIOCSWINSZ

from holdfast.commands.contract import CommandRequest
from holdfast.commands.full.channel import Channel
from holdfast.commands.output import InputWriter

_ROWS, _COLUMNS = 24, 80


class ProgramStreams:
    """Descriptors for the program, to be closed here once it has them, and the host's ends."""

    def __init__(self, *, given: list[int], reading: int, writer: InputWriter | None) -> None:
        self.given = given
        """The program's input, if it has one, then its output."""
        self.reading = reading
        self.writer = writer

    def close_given(self) -> None:
        """Close the program's ends."""
        for descriptor in set(self.given):
            os.close(descriptor)


async def open_streams(
    request: CommandRequest, channel: Channel, *, keeps_input: bool, input_socket: socket.socket | None = None
) -> ProgramStreams:
    """Open a terminal or pipes; with `keeps_input` the input stays open for later writes. Raises CommandError.

    An `input_socket` becomes the program's standard input.
    """
    if request.has_terminal:
        controller, terminal = (await channel.ask("terminal")).descriptors
        ioctl(controller, TIOCSWINSZ, pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        writer = InputWriter(os.dup(controller))
        if request.stdin:
            await writer.write(request.stdin)
        return ProgramStreams(given=[terminal, terminal], reading=controller, writer=writer)
    reading, output = os.pipe2(os.O_CLOEXEC)
    if input_socket is not None:
        return ProgramStreams(given=[os.dup(input_socket.fileno()), output], reading=reading, writer=None)
    if keeps_input:
        stdin, writing = os.pipe2(os.O_CLOEXEC)
        return ProgramStreams(given=[stdin, output], reading=reading, writer=InputWriter(writing))
    inputs = [] if request.stdin is None else [content_descriptor(request.stdin)]
    return ProgramStreams(given=[*inputs, output], reading=reading, writer=None)


def content_descriptor(content: bytes) -> int:
    """A descriptor from which a content can be read once."""
    descriptor = os.memfd_create("content", os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
