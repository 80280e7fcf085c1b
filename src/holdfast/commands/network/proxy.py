"""The HTTP proxy of commands: judges each host while the program runs, and dials the address that was judged.

It accepts on a socket that was made inside the network namespace of the sandbox, so programs have no other way out. It tunnels
CONNECT and forwards plain `http://` requests, one a connection. It never sees inside TLS.
"""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Collection

from holdfast.commands.contract import HostVerdict, JudgeHost
from holdfast.commands.network.addresses import (
    Network,
    SystemNetwork,
    choose_addresses,
    dial,
    is_address,
    is_own_host,
)
from holdfast.commands.network.byte_stream import (
    ByteStream,
    InvalidBody,
    relay_both_ways,
    relay_request,
)
from holdfast.commands.network.host_questions import HostQuestions
from holdfast.commands.network.request_head import END_OF_HEAD, BadRequest, ProxyRequest, parse_head
from holdfast.core import Value, escape_to_one_line

_WEB_PORTS = frozenset((80, 443))
_SSH_PORT = 22
_MAX_DISCARDED = 1 << 20
_OUT_OF_DESCRIPTORS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class ProxyLimits(Value):
    """Bounds of one proxy. The program behind it is not trusted."""

    connections: int = 128
    head_bytes: int = 32_768
    head_seconds: float = 10.0
    asking: int = 8
    """How many hosts may be judged at the same time: each may be a question to a person."""
    ask_seconds: float = 60.0
    idle_seconds: float = 900.0
    half_open_seconds: float = 60.0
    hosts: int = 1_000
    """How many hosts are counted by name."""


class HostDecision(Value):
    """Whether one connection was let through. `host` is empty if the request was not valid."""

    host: str
    port: int
    is_allowed: bool
    reason: str = ""
    rule: str = ""


class HostTraffic(Value):
    """What programs exchanged with one host."""

    host: str
    connections: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


class _Counter:
    def __init__(self) -> None:
        self.connections = self.sent = self.received = 0

    def add_sent(self, count: int) -> None:
        self.sent += count

    def add_received(self, count: int) -> None:
        self.received += count


class _Denied(Exception):
    def __init__(self, decision: HostDecision, status: int = 403) -> None:
        super().__init__(decision.reason)
        self.decision = decision
        self.status = status


class CommandProxy:
    """One proxy for the programs of a session. `serve` runs until it is cancelled."""

    def __init__(
        self,
        listener: socket.socket,
        *,
        judge: JudgeHost,
        on_decision: Callable[[HostDecision], None],
        named_endpoints: Callable[[], Collection[tuple[str, int]]] = tuple,
        network: Network | None = None,
        limits: ProxyLimits | None = None,
    ) -> None:
        """`named_endpoints` finds the hosts with ports other than 80 and 443 that the person's own configuration names."""
        self._listener = listener
        self._on_decision = on_decision
        self._named_endpoints = named_endpoints
        self._network = network or SystemNetwork()
        self._limits = limits or ProxyLimits()
        self._connections: set[socket.socket] = set()
        self._questions = HostQuestions(
            judge, asking=self._limits.asking, ask_seconds=self._limits.ask_seconds
        )
        self._counters: dict[str, _Counter] = {}

    def traffic(self) -> tuple[HostTraffic, ...]:
        """What was exchanged with each host so far."""
        return tuple(
            HostTraffic(
                host=host, connections=one.connections, sent_bytes=one.sent, received_bytes=one.received
            )
            for host, one in self._counters.items()
        )

    async def serve(self) -> None:
        """Accept connections until cancelled; then every connection is closed."""
        self._listener.setblocking(False)
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    connection = await self._accept()
                    self._connections.add(connection)
                    tasks.create_task(self._serve_connection(connection))
        finally:
            for connection in self._connections:  # of tasks that were cancelled before they began
                connection.close()

    async def _accept(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
                return connection
            except ConnectionError:
                continue
            except OSError as error:
                if error.errno not in _OUT_OF_DESCRIPTORS:
                    raise
                await asyncio.sleep(0.1)

    async def _serve_connection(self, connection: socket.socket) -> None:
        client = ByteStream(connection)
        try:
            if len(self._connections) > self._limits.connections:
                raise _Denied(_invalid(f"more than {self._limits.connections} connections"), 503)
            async with asyncio.timeout(self._limits.head_seconds):
                head = await client.read_until(END_OF_HEAD, max_bytes=self._limits.head_bytes)
            if head is not None:
                await self._serve_request(client, parse_head(head))
        except TimeoutError:
            await self._refuse(client, _Denied(_invalid("the request did not arrive in time"), 408))
        except (BadRequest, InvalidBody) as error:
            await self._refuse(client, _Denied(_invalid(str(error)), 400))
        except _Denied as denied:
            await self._refuse(client, denied)
        except OSError:
            pass
        finally:
            self._connections.discard(connection)
            client.close()

    async def _serve_request(self, client: ByteStream, request: ProxyRequest) -> None:
        verdict = await self._verdict(client, request)
        if verdict is None:
            return
        upstream = await self._connect(client, request, verdict)
        if upstream is None:
            return
        self._report(request, is_allowed=True, verdict=verdict)
        counter = self._counter(request.host)
        counter.connections += 1
        try:
            if request.is_tunnel:
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await relay_both_ways(
                    client,
                    upstream,
                    idle_seconds=self._limits.idle_seconds,
                    half_open_seconds=self._limits.half_open_seconds,
                    on_sent=counter.add_sent,
                    on_received=counter.add_received,
                )
            else:
                await self._forward(client, upstream, request, counter)
        finally:
            upstream.close()

    async def _verdict(self, client: ByteStream, request: ProxyRequest) -> HostVerdict | None:
        """The verdict on the host, or None if the program hung up meanwhile. Raises _Denied."""
        if is_own_host(request.host):
            raise self._denied(
                request, "it is a loopback or link-local address, which programs can never reach"
            )
        if not self._is_port_allowed(request):
            raise self._denied(request, f"port {request.port} is not open to programs; only 80 and 443 are")
        verdict = await self._questions.verdict(request.host, request.port, hung_up=client.hung_up())
        if verdict is not None and not verdict.is_allowed:
            raise self._denied(request, verdict.reason or "the policy does not allow this host", verdict)
        return verdict

    def _is_port_allowed(self, request: ProxyRequest) -> bool:
        if request.port in _WEB_PORTS or (request.host, request.port) in self._named_endpoints():
            return True
        return request.port == _SSH_PORT and request.is_tunnel and not is_address(request.host)

    async def _connect(
        self, client: ByteStream, request: ProxyRequest, verdict: HostVerdict
    ) -> ByteStream | None:
        """A connection to the host, or None if the program hung up meanwhile. Raises _Denied."""
        chosen = await choose_addresses(
            self._network, request.host, request.port, allows_private=verdict.allows_private
        )
        addresses = chosen.addresses
        if chosen.private:
            # The person sees the address, and only that one is dialled.
            addresses = chosen.private[:1]
            answer = await self._questions.verdict(
                request.host, request.port, addresses[0], hung_up=client.hung_up()
            )
            if answer is None:
                return None
            if not answer.is_allowed:
                raise self._denied(request, f"{chosen.problem}; {answer.reason}", answer)
        if not addresses:
            raise self._denied(request, chosen.problem, verdict)
        try:
            return ByteStream(await dial(self._network, addresses, request.port))
        except OSError as error:
            raise _Denied(
                _decision(request, is_allowed=True, reason=f"no connection: {error.strerror or error}"), 502
            ) from None

    async def _forward(
        self, client: ByteStream, upstream: ByteStream, request: ProxyRequest, counter: _Counter
    ) -> None:
        """Send one request and relay its response; bytes after the request go nowhere."""
        head = request.forwarded_head()
        counter.add_sent(len(head))
        size = None if request.body == "chunked" else request.body_bytes
        await upstream.send(head)
        await relay_request(
            client,
            upstream,
            body_bytes=size,
            idle_seconds=self._limits.idle_seconds,
            on_sent=counter.add_sent,
            on_received=counter.add_received,
        )

    async def _refuse(self, client: ByteStream, denied: _Denied) -> None:
        self._on_decision(denied.decision)
        reason = _header_text(denied.decision.reason)
        body = f"Holdfast: {reason}\n".encode()
        phrase = {400: "Bad Request", 403: "Forbidden", 408: "Request Timeout", 502: "Bad Gateway"}
        head = (
            f"HTTP/1.1 {denied.status} {phrase.get(denied.status, 'Service Unavailable')} - {reason}\r\n"
            f"X-Holdfast: {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(self._limits.head_seconds):
                await client.send(head.encode("ascii") + body)
                # Unread bytes would reset the connection before the program has read the answer.
                client.end_writing()
                await client.discard(_MAX_DISCARDED)

    def _denied(self, request: ProxyRequest, reason: str, verdict: HostVerdict | None = None) -> _Denied:
        rule = verdict.rule if verdict else ""
        return _Denied(_decision(request, is_allowed=False, reason=f"{request.host}: {reason}", rule=rule))

    def _report(self, request: ProxyRequest, *, is_allowed: bool, verdict: HostVerdict) -> None:
        self._on_decision(_decision(request, is_allowed=is_allowed, reason=verdict.reason, rule=verdict.rule))

    def _counter(self, host: str) -> _Counter:
        if host not in self._counters and len(self._counters) >= self._limits.hosts:
            host = "other hosts"
        return self._counters.setdefault(host, _Counter())


def _decision(request: ProxyRequest, *, is_allowed: bool, reason: str = "", rule: str = "") -> HostDecision:
    return HostDecision(host=request.host, port=request.port, is_allowed=is_allowed, reason=reason, rule=rule)


def _invalid(reason: str) -> HostDecision:
    return HostDecision(host="", port=0, is_allowed=False, reason=reason)


def _header_text(reason: str) -> str:
    return escape_to_one_line(reason[:200]).encode("ascii", "replace").decode("ascii")
