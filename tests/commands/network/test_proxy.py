"""The proxy of commands: which requests pass, where they go, and what happens meanwhile."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
from tests.commands.network.loopback_network import (
    OTHER,
    PUBLIC,
    EchoServer,
    LoopbackNetwork,
    ProxyUnderTest,
    echo_server,
    running_proxy,
)

from holdfast.commands.network.addresses import SystemNetwork
from holdfast.commands.network.proxy import HostDecision, ProxyLimits


@pytest.fixture
async def network() -> AsyncIterator[LoopbackNetwork]:
    """`example.com` has one public address, where port 80 answers requests and 443 echoes."""
    network = LoopbackNetwork()
    network.names["example.com"] = [[PUBLIC]]
    async with echo_server(network, PUBLIC, 443):
        yield network


@pytest.fixture
async def web(network: LoopbackNetwork) -> AsyncIterator[EchoServer]:
    async with echo_server(network, PUBLIC, 80) as echo:
        yield echo


@pytest.fixture
async def proxy(network: LoopbackNetwork) -> AsyncIterator[ProxyUnderTest]:
    async with running_proxy(network) as under_test:
        yield under_test


async def test_an_allowed_host_is_tunnelled_and_its_bytes_are_counted(proxy: ProxyUnderTest) -> None:
    reader, writer, head = await proxy.connect_to("Example.COM.:443")
    with contextlib.closing(writer):
        assert head.startswith(b"HTTP/1.1 200 ")
        writer.write(b"x" * 300_000)
        writer.write_eof()
        assert await reader.read() == b"x" * 300_000 + b"<end>"
    assert proxy.judged == [("example.com", 443)]
    assert proxy.network.dialled == [(PUBLIC, 443)]
    assert proxy.decisions == [HostDecision(host="example.com", port=443, is_allowed=True, rule="hosts")]
    (traffic,) = proxy.proxy.traffic()
    assert (traffic.host, traffic.connections) == ("example.com", 1)
    assert (traffic.sent_bytes, traffic.received_bytes) == (300_000, 300_005)


async def test_a_denied_host_gets_the_reason_and_is_not_looked_up(proxy: ProxyUnderTest) -> None:
    answer = await proxy.ask(b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 Forbidden - evil.example: not on the list\r\n")
    assert answer.endswith(b"\r\n\r\nHoldfast: evil.example: not on the list\n")
    assert proxy.network.looked_up == []
    assert proxy.decisions == [
        HostDecision(
            host="evil.example",
            port=443,
            is_allowed=False,
            reason="evil.example: not on the list",
            rule="hosts",
        )
    ]


@pytest.mark.parametrize(
    "authority",
    [
        "127.0.0.1:443", "127.1:443", "2130706433:443", "0x7f000001:443", "0177.0.0.1:443", "0x7f.1:443", "127.0.0.1.:443",
        "localhost:443", "LOCALHOST.:443", "foo.localhost:443", "[::1]:443", "[::]:443", "0:443", "0.0.0.0:443",
        "[::ffff:127.0.0.1]:443", "[::ffff:7f00:1]:443", "[::127.0.0.1]:443", "[64:ff9b::7f00:1]:443", "[2002:7f00:1::]:443",
        "169.254.169.254:80", "2852039166:80", "0xa9fea9fe:80", "[fd00:ec2::254]:80", "[fe80::1]:443", "[::ffff:a9fe:a9fe]:80",
        "100.100.100.200:80", "224.0.0.1:443", "255.255.255.255:443", "192.0.0.192:80", "168.63.129.16:80",
    ],
)  # fmt: skip
async def test_no_spelling_of_this_machine_or_of_a_metadata_service_is_even_judged(
    proxy: ProxyUnderTest, authority: str
) -> None:
    proxy.allowed = proxy.private = {authority, "127.0.0.1", "localhost", "169.254.169.254"}
    answer = await proxy.ask(f"CONNECT {authority} HTTP/1.1\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert (proxy.judged, proxy.network.dialled) == ([], [])


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "::1", "fe80::1", "fc00::1", "::ffff:10.0.0.1", "100.64.0.1"],
)  # fmt: skip
async def test_a_name_that_resolves_to_a_local_address_is_refused(
    proxy: ProxyUnderTest, address: str
) -> None:
    proxy.network.names["example.com"] = [[address]]
    answer = await proxy.ask(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
    assert b"403 Forbidden - example.com: the host is at " in answer
    assert proxy.network.dialled == []
    assert [decision.is_allowed for decision in proxy.decisions] == [False]


async def test_of_mixed_answers_only_public_addresses_are_dialled(proxy: ProxyUnderTest) -> None:
    proxy.network.names["example.com"] = [["127.0.0.1", "10.1.2.3", OTHER, PUBLIC]]
    _, writer, head = await proxy.connect_to("example.com:443")
    writer.close()
    assert b" 200 " in head
    assert proxy.network.dialled == [(OTHER, 443), (PUBLIC, 443)]


async def test_a_rebinding_name_is_looked_up_once_and_dialled_at_the_checked_address(
    proxy: ProxyUnderTest,
) -> None:
    proxy.network.names["example.com"] = [[PUBLIC], ["127.0.0.1"]]
    _, writer, _ = await proxy.connect_to("example.com:443")
    writer.close()
    assert proxy.network.looked_up == ["example.com"]
    assert proxy.network.dialled == [(PUBLIC, 443)]
    assert (await proxy.ask(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 403 ")
    assert proxy.network.dialled == [(PUBLIC, 443)]


async def test_a_private_address_is_dialled_only_if_the_host_was_named(network: LoopbackNetwork) -> None:
    network.names["nexus.corp"] = [["10.0.0.7"]]
    endpoints = [("nexus.corp", 8081)]
    async with (
        echo_server(network, "10.0.0.7", 8081),
        running_proxy(network, named_endpoints=endpoints) as proxy,
    ):
        proxy.allowed = {"nexus.corp", "10.0.0.7"}
        assert b" 403 " in await proxy.ask(b"CONNECT nexus.corp:8081 HTTP/1.1\r\n\r\n")
        proxy.private = {"nexus.corp"}
        _, writer, head = await proxy.connect_to("nexus.corp:8081")
        writer.close()
        assert b" 200 " in head
        network.names["nexus.corp"] = [["127.0.0.1"]]
        assert b" 403 " in await proxy.ask(b"CONNECT nexus.corp:8081 HTTP/1.1\r\n\r\n")


async def test_a_private_address_is_asked_about_and_only_that_one_is_dialled(
    network: LoopbackNetwork,
) -> None:
    network.names["mirror.corp"] = [["203.0.113.8", "10.0.0.7"]]
    async with echo_server(network, "203.0.113.8", 443), running_proxy(network) as proxy:
        proxy.allowed = {"mirror.corp"}
        refused = await proxy.ask(b"CONNECT mirror.corp:443 HTTP/1.1\r\n\r\n")
        assert b" 403 " in refused
        assert b"203.0.113.8, which is not an address of the public internet; nobody approved it" in refused
        assert network.dialled == []
        proxy.allowed_addresses = {"203.0.113.8"}
        _, writer, head = await proxy.connect_to("mirror.corp:443")
        writer.close()
        assert b" 200 " in head
        assert network.dialled == [("203.0.113.8", 443)]
        network.names["mirror.corp"] = [
            ["127.0.0.1"],
            ["169.254.169.254"],
            ["100.100.100.200"],
            ["224.0.0.1"],
        ]
        for _ in range(4):
            assert b" 403 " in await proxy.ask(b"CONNECT mirror.corp:443 HTTP/1.1\r\n\r\n")
        assert proxy.asked_addresses == ["203.0.113.8", "203.0.113.8"]


@pytest.mark.parametrize(
    "authority", ["example.com:25", "example.com:8080", f"{PUBLIC}:22", "example.com:6379"]
)
async def test_other_ports_are_refused_unasked(proxy: ProxyUnderTest, authority: str) -> None:
    proxy.allowed.add(PUBLIC)
    answer = await proxy.ask(f"CONNECT {authority} HTTP/1.1\r\n\r\n".encode())
    assert b"403 Forbidden" in answer
    assert b"is not open to programs" in answer
    assert proxy.judged == []


async def test_the_port_of_ssh_is_judged_for_a_host_with_a_name(proxy: ProxyUnderTest) -> None:
    async with echo_server(proxy.network, PUBLIC, 22):
        _, writer, head = await proxy.connect_to("example.com:22")
        writer.close()
    assert b" 200 " in head
    assert proxy.judged == [("example.com", 22)]
    assert b"403" in await proxy.ask(b"GET http://example.com:22/ HTTP/1.1\r\n\r\n")


async def test_a_plain_request_is_rewritten_for_the_judged_host(
    proxy: ProxyUnderTest, web: EchoServer
) -> None:
    answer = await proxy.ask(
        b"POST http://EXAMPLE.com?q=1 HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: secret\r\nX-One: 1\r\n"
        b"Connection: X-Two, keep-alive\r\nX-Two: 2\r\nUpgrade: h2c\r\nContent-Length: 4\r\n\r\nbody"
    )
    expected = b"POST /?q=1 HTTP/1.1\r\nHost: example.com\r\nX-One: 1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
    assert web.received == [expected]
    assert answer == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + expected
    (traffic,) = proxy.proxy.traffic()
    assert (traffic.sent_bytes, traffic.received_bytes) == (len(expected), len(answer))


async def test_a_second_request_on_the_same_connection_goes_nowhere(
    proxy: ProxyUnderTest, web: EchoServer
) -> None:
    second = b"GET http://example.com/second HTTP/1.1\r\nHost: other.example\r\n\r\n"
    await proxy.ask(b"GET http://example.com/first HTTP/1.1\r\n\r\n" + second)
    await proxy.ask(b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi" + second)
    chunked = b"POST http://example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nTrailer: x\r\n\r\n"
    await proxy.ask(chunked + second)
    assert [data.partition(b"\r\n\r\n")[2] for data in web.received] == [
        b"", b"hi", b"3\r\nabc\r\n0\r\n\r\n",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "request_head",
    [
        b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
        b"GET https://example.com/ HTTP/1.1\r\n\r\n",
        b"GET ftp://example.com/ HTTP/1.1\r\n\r\n",
        b"GET http://user:pass@example.com/ HTTP/1.1\r\n\r\n",
        b"GET http://example.com@evil.example/ HTTP/1.1\r\n\r\n",
        b"GET http://example.com\\@evil.example/ HTTP/1.1\r\n\r\n",
        b"GET http://example.com#@evil.example/ HTTP/1.1\r\n\r\n",
        b"GET http://exam%70le.com/ HTTP/1.1\r\n\r\n",
        b"GET http://example.com:80:81/ HTTP/1.1\r\n\r\n",
        b"GET http://example.com:0/ HTTP/1.1\r\n\r\n",
        b"GET http://example.com:99999/ HTTP/1.1\r\n\r\n",
        b"GET http:///path HTTP/1.1\r\n\r\n",
        b"GET  http://example.com/ HTTP/1.1\r\n\r\n",
        b"GET http://example.com/ HTTP/2.0\r\n\r\n",
        b"GET http://example.com/\r\n\r\n",
        b"GET\thttp://example.com/ HTTP/1.1\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\nHost: x\n\n\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nA: b\nEvil: c\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nA: b\rEvil: c\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nA : b\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\n: b\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nA: \x00\r\n\r\n",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: +1\r\n\r\nx",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 0x1\r\n\r\nx",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\nx",
        b"POST http://example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        b"POST http://example.com/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
        b"POST http://example.com/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"CONNECT example.com HTTP/1.1\r\n\r\n",
        b"CONNECT http://example.com:443 HTTP/1.1\r\n\r\n",
        b"CONNECT example.com:443/ HTTP/1.1\r\n\r\n",
        b"CONNECT user@example.com:443 HTTP/1.1\r\n\r\n",
        b"CONNECT example.com:+443 HTTP/1.1\r\n\r\n",
        b"CONNECT [example.com]:443 HTTP/1.1\r\n\r\n",
        b"CONNECT [::1%25lo]:443 HTTP/1.1\r\n\r\n",
        b"CONNECT ex\xc3\xa4mple.com:443 HTTP/1.1\r\n\r\n",
        b"connect example.com:443 HTTP/1.1\r\n\r\n",
        b"\r\nCONNECT example.com:443 HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n",
    ],
)
async def test_a_request_that_can_be_read_in_two_ways_is_refused(
    proxy: ProxyUnderTest, request_head: bytes
) -> None:
    assert (await proxy.ask(request_head)).startswith(b"HTTP/1.1 400 ")
    assert (proxy.judged, proxy.network.dialled) == ([], [])
    assert [(decision.host, decision.is_allowed) for decision in proxy.decisions] == [("", False)]


@pytest.mark.parametrize(
    "chunk",
    [b"x\r\n", b"-1\r\n", b"0x3\r\nabc\r\n", b"3\r\nabcd\r\n", b"3\nabc\n", b"\r\n", b"fffffffff\r\n"],
)
async def test_a_body_with_invalid_chunks_ends_the_connection(
    proxy: ProxyUnderTest, web: EchoServer, chunk: bytes
) -> None:
    head = b"POST http://example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await proxy.ask(
        head + chunk + b"0\r\n\r\nGET http://example.com/second HTTP/1.1\r\n\r\n", then_close=True
    )
    assert b"second" not in answer
    assert all(b"second" not in data for data in web.received)


async def test_a_tunnel_inside_a_tunnel_does_not_reach_the_proxy_again(proxy: ProxyUnderTest) -> None:
    reader, writer, _ = await proxy.connect_to("example.com:443")
    with contextlib.closing(writer):
        inner = b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n"
        writer.write(inner)
        writer.write_eof()
        assert await reader.read() == inner + b"<end>"
    assert proxy.judged == [("example.com", 443)]


async def test_a_connection_waits_while_a_person_is_asked(proxy: ProxyUnderTest) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def ask() -> None:
        asked.set()
        await answered.wait()

    proxy.before_verdict = ask
    waiting = [asyncio.create_task(proxy.connect_to("example.com:443")) for _ in range(5)]
    await asked.wait()
    assert proxy.network.looked_up == []
    answered.set()
    for _, writer, head in await asyncio.gather(*waiting):
        assert b" 200 " in head
        writer.close()
    assert proxy.judged == [("example.com", 443)]


async def test_bytes_that_were_sent_while_a_person_is_asked_arrive(
    proxy: ProxyUnderTest, web: EchoServer
) -> None:
    proxy.before_verdict = lambda: asyncio.sleep(0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    with contextlib.closing(writer):
        writer.write(b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 200000\r\n\r\n" + b"x" * 100)
        await asyncio.sleep(0.01)
        writer.write(b"y" * 199_900)
        answer = await reader.read()
    assert answer.endswith(b"\r\n\r\n" + b"x" * 100 + b"y" * 199_900)


async def test_silence_is_a_refusal_with_the_reason(network: LoopbackNetwork) -> None:
    async with running_proxy(network, limits=ProxyLimits(ask_seconds=0.05)) as proxy:
        proxy.before_verdict = lambda: asyncio.sleep(60)
        answer = await proxy.ask(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 Forbidden - example.com: no one approved it in time\r\n")


async def test_a_question_ends_when_every_program_that_asked_has_hung_up(proxy: ProxyUnderTest) -> None:
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    async def ask() -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()

    proxy.before_verdict = ask
    writers = []
    for _ in range(2):
        _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
        writers.append(writer)
        await asked.wait()
    writers[0].close()
    await asyncio.sleep(0.02)
    assert not withdrawn.is_set()
    writers[1].close()
    await withdrawn.wait()
    assert proxy.network.looked_up == []


async def test_only_some_hosts_are_asked_about_at_once(network: LoopbackNetwork) -> None:
    async with running_proxy(network, limits=ProxyLimits(asking=3)) as proxy:
        going = asyncio.Event()
        proxy.before_verdict = going.wait  # type: ignore[assignment]
        asking = [
            asyncio.create_task(proxy.ask(f"CONNECT h{n}.example:443 HTTP/1.1\r\n\r\n".encode()))
            for n in range(10)
        ]
        await proxy.judged_hosts(3)
        await asyncio.sleep(0.02)
        assert len(proxy.judged) == 3
        going.set()
        await asyncio.gather(*asking)
        assert len(proxy.judged) == 10


async def test_a_slow_head_and_a_large_head_are_cut_off(network: LoopbackNetwork) -> None:
    async with running_proxy(network, limits=ProxyLimits(head_seconds=0.1, head_bytes=1_000)) as proxy:
        assert (await proxy.ask(b"CONNECT exam")).startswith(b"HTTP/1.1 408 ")
        assert (await proxy.ask(b"GET http://example.com/" + b"a" * 1_001)).startswith(b"HTTP/1.1 400 ")
        assert (await proxy.ask(b"a" * 3_000_000)).startswith(b"HTTP/1.1 400 ")


async def test_the_number_of_connections_is_bounded_and_slots_come_back(network: LoopbackNetwork) -> None:
    async with running_proxy(network, limits=ProxyLimits(connections=4)) as proxy:
        held = [await proxy.connect_to("example.com:443") for _ in range(4)]
        assert (await proxy.ask(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 503 ")
        for reader, writer, _ in held:
            writer.write_eof()
            assert await reader.read() == b"<end>"
            writer.close()
        _, writer, head = await proxy.connect_to("example.com:443")
        writer.close()
        assert b" 200 " in head


async def test_an_idle_tunnel_and_a_half_open_tunnel_end(network: LoopbackNetwork) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            await reader.read()
            await asyncio.sleep(30)

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    network.servers[PUBLIC, 443] = server.sockets[0].getsockname()[1]
    async with server, running_proxy(network, limits=ProxyLimits(idle_seconds=0.1)) as proxy:
        reader, writer, _ = await proxy.connect_to("example.com:443")
        assert await reader.read() == b""
        writer.close()
    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    network.servers[PUBLIC, 443] = server.sockets[0].getsockname()[1]
    async with server, running_proxy(network, limits=ProxyLimits(half_open_seconds=0.1)) as proxy:
        reader, writer, _ = await proxy.connect_to("example.com:443")
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()


async def test_closing_the_proxy_closes_every_connection(network: LoopbackNetwork) -> None:
    async with running_proxy(network) as proxy:
        tunnel, tunnel_writer, _ = await proxy.connect_to("example.com:443")
        head, head_writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        proxy.before_verdict = lambda: asyncio.sleep(60)
        held, held_writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        held_writer.write(b"CONNECT other.example:443 HTTP/1.1\r\n\r\n")
        await proxy.judged_hosts(2)
    for reader, writer in ((tunnel, tunnel_writer), (head, head_writer), (held, held_writer)):
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_a_host_that_does_not_answer_is_a_bad_gateway(proxy: ProxyUnderTest) -> None:
    proxy.network.names["example.com"] = [[OTHER]]
    answer = await proxy.ask(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 502 Bad Gateway - no connection: Connection refused\r\n")
    proxy.network.names.clear()
    assert b"403 Forbidden - example.com: the host cannot be resolved" in await proxy.ask(
        b"CONNECT example.com:443 HTTP/1.1\r\n\r\n"
    )


async def test_the_system_network_refuses_an_address_of_this_machine() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(OSError, match="address of this machine"),
    ):
        await SystemNetwork().connect("127.0.0.1", server.getsockname()[1])
