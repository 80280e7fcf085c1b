"""Device attributes: what a terminal says about itself when it is asked (DA1). Nearly all answer at once."""

import asyncio
import os
import re
import sys
import termios

SIXEL = 4
"""The attribute of a terminal that draws sixel pictures."""
_REQUEST = "\x1b[c"
_REPLY = re.compile(rb"\x1b\[\?([\d;]*)c")
_WAIT_SECONDS = 3.0
"""Long enough for a slow connection: a later reply would be taken for typed text."""
_LOCAL_FLAGS = 3


async def read_device_attributes(descriptor: int = 0) -> frozenset[int]:
    """Ask the terminal, and return its attributes; none if it does not answer. Call it only while nothing else reads keys."""
    loop = asyncio.get_running_loop()
    reply: asyncio.Future[frozenset[int]] = loop.create_future()
    received = b""

    def read() -> None:
        nonlocal received
        content = os.read(descriptor, 1024)
        received += content
        found = _REPLY.search(received)
        if not reply.done() and (found or not content):
            numbers = found[1].split(b";") if found else []
            reply.set_result(frozenset(int(number) for number in numbers if number))

    before = termios.tcgetattr(descriptor)
    silent = termios.tcgetattr(descriptor)
    silent[_LOCAL_FLAGS] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
    loop.add_reader(descriptor, read)
    try:
        sys.stdout.write(_REQUEST)
        sys.stdout.flush()
        async with asyncio.timeout(_WAIT_SECONDS):
            return await reply
    except TimeoutError:
        return frozenset()
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
