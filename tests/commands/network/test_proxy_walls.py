"""Each check of the proxy holds off an attack that no other check does: without it, the attack succeeds."""

import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

import pytest
from tests.commands.network.loopback_network import (
    OTHER,
    PUBLIC,
    LoopbackNetwork,
    ProxyUnderTest,
    echo_server,
    running_proxy,
)

from holdfast.commands.contract import HostVerdict
from holdfast.commands.network import addresses, proxy, request_head
from holdfast.commands.network.addresses import Network
from holdfast.commands.network.host_questions import HostQuestions
from holdfast.commands.network.proxy import CommandProxy, ProxyLimits

INTERNAL = "10.0.0.5"
CONNECTIONS = 2
LIMITS = ProxyLimits(connections=CONNECTIONS)
UNLIMITED = 1 << 30


async def _is_tunnelled(under_test: ProxyUnderTest, authority: str, headers: str = "") -> bool:
    """Whether a program exchanges bytes with whatever is at the other end."""
    request = f"CONNECT {authority} HTTP/1.1\r\n{headers}\r\n".encode()
    answer = await under_test.ask(request + b"secret", then_close=True)
    return answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"secret<end>")


async def send_to_a_host_that_nobody_allowed(under_test: ProxyUnderTest) -> bool:
    return await _is_tunnelled(under_test, "evil.example:443")


async def reach_the_internal_network_by_a_name(under_test: ProxyUnderTest) -> bool:
    """The owner of an allowed name lets it point into the network of the person."""
    under_test.network.names["example.com"] = [[INTERNAL]]
    return await _is_tunnelled(under_test, "example.com:443")


async def rebind_a_name_after_the_check(under_test: ProxyUnderTest) -> bool:
    """The first answer is public, every later one is not."""
    under_test.network.names["example.com"] = [[PUBLIC], [INTERNAL]]
    await _is_tunnelled(under_test, "example.com:443")
    return (INTERNAL, 443) in under_test.network.dialled


async def send_mail_through_an_allowed_host(under_test: ProxyUnderTest) -> bool:
    return await _is_tunnelled(under_test, "example.com:25")


async def have_the_person_asked_about_this_machine(under_test: ProxyUnderTest) -> bool:
    for authority in ("127.0.0.1:80", "localhost:443", "169.254.169.254:80"):
        await _is_tunnelled(under_test, authority)
    return bool(under_test.judged)


async def fill_the_memory_with_one_head(under_test: ProxyUnderTest) -> bool:
    return await _is_tunnelled(under_test, "example.com:443", f"X: {'a' * 1_000_000}\r\n")


async def fill_the_head_with_headers(under_test: ProxyUnderTest) -> bool:
    return await _is_tunnelled(under_test, "example.com:443", "X: a\r\n" * 2_000)


async def take_every_connection(under_test: ProxyUnderTest) -> bool:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(CONNECTIONS):
            _, writer, head = await under_test.connect_to("example.com:443")
            stack.enter_context(contextlib.closing(writer))
            assert head.startswith(b"HTTP/1.1 200 ")
        return await _is_tunnelled(under_test, "example.com:443")


async def name_two_hosts_in_one_request(under_test: ProxyUnderTest) -> bool:
    """A server behind the judged address chooses a site by the Host header."""
    answer = await under_test.ask(b"GET http://example.com/ HTTP/1.1\r\nHost: internal.example\r\n\r\n")
    return b"Host: internal.example" in answer


async def _allow_every_host(*_: object, hung_up: Coroutine[None, None, None]) -> HostVerdict:
    hung_up.close()
    return HostVerdict(is_allowed=True)


async def _dial_the_name(network: Network, _: Sequence[str], port: int) -> socket.socket:
    return await network.connect((await network.resolve("example.com", port))[0], port)


Attack = Callable[[ProxyUnderTest], Awaitable[bool]]
Removal = Callable[[pytest.MonkeyPatch], None]


def _unlimited(field: str) -> Removal:
    """Lift one of the limits, whatever the proxy is given."""
    return lambda patch: patch.setattr(ProxyLimits, field, property(lambda _: UNLIMITED))


WALLS: dict[str, tuple[Removal, Attack]] = {
    "hosts are judged": (
        lambda patch: patch.setattr(HostQuestions, "verdict", _allow_every_host),
        send_to_a_host_that_nobody_allowed,
    ),
    "only public addresses are dialled": (
        lambda patch: patch.setattr(addresses, "_may_dial", lambda *_, **__: True),
        reach_the_internal_network_by_a_name,
    ),
    "the address that was checked is dialled": (
        lambda patch: patch.setattr(proxy, "dial", _dial_the_name),
        rebind_a_name_after_the_check,
    ),
    "ports are limited": (
        lambda patch: patch.setattr(CommandProxy, "_is_port_allowed", lambda *_: True),
        send_mail_through_an_allowed_host,
    ),
    "this machine is refused unasked": (
        lambda patch: patch.setattr(proxy, "is_own_host", lambda _: False),
        have_the_person_asked_about_this_machine,
    ),
    "the size of a head is limited": (_unlimited("head_bytes"), fill_the_memory_with_one_head),
    "the number of headers is limited": (
        lambda patch: patch.setattr(request_head, "_MAX_HEADERS", UNLIMITED),
        fill_the_head_with_headers,
    ),
    "the number of connections is limited": (_unlimited("connections"), take_every_connection),
    "the Host header is written again": (
        lambda patch: patch.setattr(request_head, "_HOP_BY_HOP", frozenset(("connection",))),
        name_two_hosts_in_one_request,
    ),
}


@pytest.fixture
async def network() -> AsyncIterator[LoopbackNetwork]:
    """Servers at every place that an attack wants to reach."""
    network = LoopbackNetwork()
    network.names |= {"example.com": [[PUBLIC]], "evil.example": [[OTHER]]}
    places = [(PUBLIC, 443), (PUBLIC, 25), (PUBLIC, 80), (OTHER, 443), (INTERNAL, 443)]
    async with contextlib.AsyncExitStack() as stack:
        for address, port in places:
            await stack.enter_async_context(echo_server(network, address, port))
        yield network


@pytest.mark.parametrize("wall", WALLS)
async def test_an_attack_succeeds_only_without_the_wall_against_it(
    network: LoopbackNetwork, wall: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, attack = WALLS[wall]
    async with running_proxy(network, limits=LIMITS) as under_test:
        assert not await attack(under_test)
    with monkeypatch.context() as patch:
        remove(patch)
        async with running_proxy(network, limits=LIMITS) as under_test:
            assert await attack(under_test), "another check holds it off, so this test shows nothing"
