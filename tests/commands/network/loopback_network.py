"""A network whose public addresses are servers on the loopback of this machine, and a proxy over it."""

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from holdfast.commands.contract import HostVerdict
from holdfast.commands.network.proxy import CommandProxy, HostDecision, ProxyLimits

PUBLIC = "93.184.215.14"
OTHER = "93.184.215.15"


class LoopbackNetwork:
    """Names have addresses, addresses have local servers. Every lookup and every dial is recorded."""

    def __init__(self) -> None:
        self.names: dict[str, list[Sequence[str]]] = {}
        """By name: the answers to one lookup after the other; the last one stays."""
        self.servers: dict[tuple[str, int], int] = {}
        self.looked_up: list[str] = []
        self.dialled: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.looked_up.append(host)
        answers = self.names.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect(self, address: str, port: int) -> socket.socket:
        self.dialled.append((address, port))
        if (address, port) not in self.servers:
            raise ConnectionRefusedError(111, "Connection refused")
        connection = socket.socket()
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.servers[address, port]))
        return connection


class ProxyUnderTest:
    """A running proxy with its record."""

    def __init__(self, network: LoopbackNetwork, port: int) -> None:
        self.network = network
        self.port = port
        self.proxy: CommandProxy
        self.decisions: list[HostDecision] = []
        self.judged: list[tuple[str, int]] = []
        self._judged_more = asyncio.Condition()
        self.allowed = {"example.com"}
        self.private = set[str]()
        self.asked_addresses: list[str] = []
        self.allowed_addresses = set[str]()
        self.before_verdict: Callable[[], Awaitable[None]] | None = None

    async def judge(self, host: str, port: int, address: str = "") -> HostVerdict:
        if address:
            self.asked_addresses.append(address)
            return HostVerdict(is_allowed=address in self.allowed_addresses, reason="nobody approved it")
        self.judged.append((host, port))
        async with self._judged_more:
            self._judged_more.notify_all()
        if self.before_verdict is not None:
            await self.before_verdict()
        if host not in self.allowed:
            return HostVerdict(is_allowed=False, reason="not on the list", rule="hosts")
        return HostVerdict(is_allowed=True, rule="hosts", allows_private=host in self.private)

    async def judged_hosts(self, count: int) -> None:
        """Wait until so many hosts have been judged, or are being judged."""
        async with self._judged_more:
            await self._judged_more.wait_for(lambda: len(self.judged) >= count)

    async def ask(self, request: bytes, *, then_close: bool = False) -> bytes:
        """Send bytes to the proxy and read until it closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        with contextlib.closing(writer):
            writer.write(request)
            if then_close:
                writer.write_eof()
            return await reader.read()

    async def connect_to(self, authority: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
        """Ask for a tunnel; the head of the answer is the third value."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        return reader, writer, await reader.readuntil(b"\r\n\r\n")


@contextlib.asynccontextmanager
async def running_proxy(
    network: LoopbackNetwork | None = None,
    *,
    limits: ProxyLimits | None = None,
    named_endpoints: Sequence[tuple[str, int]] = (),
    listener: socket.socket | None = None,
) -> AsyncIterator[ProxyUnderTest]:
    """A proxy on a loopback port, with `example.com` allowed and served by an echo of what it received."""
    network = network or LoopbackNetwork()
    listener = listener or socket.create_server(("127.0.0.1", 0))
    under_test = ProxyUnderTest(network, listener.getsockname()[1])
    under_test.proxy = CommandProxy(
        listener,
        judge=under_test.judge,
        on_decision=under_test.decisions.append,
        network=network,
        limits=limits,
        named_endpoints=lambda: named_endpoints,
    )
    serving = asyncio.create_task(under_test.proxy.serve())
    try:
        yield under_test
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        listener.close()


class EchoServer:
    """Answers a request with the bytes that it received, or echoes a tunnel."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.port = 0

    async def handle_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError):
            data = await reader.readuntil(b"\r\n\r\n")
            if size := re.search(rb"Content-Length: (\d+)", data):
                data += await reader.readexactly(int(size[1]))
            elif b"chunked" in data:
                data += await reader.readuntil(b"0\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + data)
            writer.write_eof()
            self.received.append(data + await reader.read())

    async def handle_tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
            writer.write(b"<end>")
            await writer.drain()


@contextlib.asynccontextmanager
async def echo_server(network: LoopbackNetwork, address: str, port: int) -> AsyncIterator[EchoServer]:
    """A server at a public address of the network: requests at port 80, tunnels elsewhere."""
    echo = EchoServer()
    handle = echo.handle_request if port == 80 else echo.handle_tunnel
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    echo.port = network.servers[address, port] = server.sockets[0].getsockname()[1]
    async with server:
        yield echo
