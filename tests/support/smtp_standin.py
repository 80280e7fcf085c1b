"""A local SMTP server that records mails, and refuses recipients that a test names."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class SmtpStandIn:
    mails: list[bytes] = field(default_factory=list)
    logins: list[bytes] = field(default_factory=list)
    refused: tuple[bytes, ...] = ()
    port: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(line: bytes) -> None:
            writer.write(line + b"\r\n")

        say(b"220 stand-in")
        try:
            while line := (await reader.readline()).strip():
                verb = line.split(b" ")[0].upper()
                if verb == b"EHLO":
                    say(b"250-stand-in\r\n250 AUTH PLAIN")
                elif verb == b"AUTH":
                    self.logins.append(line)
                    say(b"235 ok")
                elif verb == b"RCPT" and any(each in line for each in self.refused):
                    say(b"550 no such person")
                elif verb == b"DATA":
                    say(b"354 go on")
                    self.mails.append(await reader.readuntil(b"\r\n.\r\n"))
                    say(b"250 taken")
                elif verb == b"QUIT":
                    say(b"221 bye")
                    break
                else:
                    say(b"250 ok")
                await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def smtp_standin() -> AsyncIterator[SmtpStandIn]:
    """A server on a free port of loopback."""
    standin = SmtpStandIn()
    server = await asyncio.start_server(standin.handle, "127.0.0.1", 0)
    standin.port = server.sockets[0].getsockname()[1]
    async with server:
        yield standin
