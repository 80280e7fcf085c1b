"""Programs in the real sandbox have no network but the proxy, whatever they try."""

import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.commands.conftest import Ran, Shell
from tests.commands.network.loopback_network import (
    PUBLIC,
    EchoServer,
    LoopbackNetwork,
    ProxyUnderTest,
    echo_server,
    running_proxy,
)

from holdfast.commands import CommandSandbox, proxy_environment


class Inside:
    """The proxy of a sandbox, and scripts that run behind it."""

    def __init__(self, proxy: ProxyUnderTest, web: EchoServer, shell: Shell) -> None:
        self.proxy = proxy
        self.web = web
        self._shell = shell

    async def run(self, script: str) -> Ran:
        variables = " ".join(
            f"{name}='{value}'" for name, value in proxy_environment(self.proxy.port).items()
        )
        return await self._shell(f"export {variables}; {script}")


@pytest.fixture
async def inside(sandbox: CommandSandbox, shell: Shell) -> AsyncIterator[Inside]:
    network = LoopbackNetwork()
    network.names["example.com"] = [[PUBLIC]]
    listener, _ = await sandbox.listen()
    async with contextlib.AsyncExitStack() as stack:
        web = await stack.enter_async_context(echo_server(network, PUBLIC, 80))
        proxy = await stack.enter_async_context(running_proxy(network, listener=listener))
        yield Inside(proxy, web, shell)


async def test_an_allowed_host_is_reached_by_ordinary_programs(inside: Inside) -> None:
    ran = await inside.run("curl -sS http://example.com/hello")
    assert ran.output.startswith("GET /hello HTTP/1.1")
    ran = await inside.run(
        "python3 -c \"import urllib.request as u; print(u.urlopen('http://example.com/py').read()[:20])\""
    )
    assert ran.output == "b'GET /py HTTP/1.1\\r\\nHo'\n"
    assert inside.proxy.judged == [("example.com", 80)] * 2


async def test_a_host_that_is_not_allowed_is_told_so(inside: Inside) -> None:
    ran = await inside.run(
        "curl -sS -o /dev/null -w '%{http_code}' http://evil.example/; curl -sS http://evil.example/"
    )
    assert ran.output == "403Holdfast: evil.example: not on the list\n"


@pytest.mark.parametrize(
    "program",
    [
        "import socket; socket.create_connection(('93.184.215.14', 80), 3)",
        "import socket; socket.create_connection(('1.1.1.1', 53), 3)",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 53))",
        "import socket; socket.socket(socket.AF_INET6).connect(('2606:4700::1111', 443))",
        "import socket; socket.getaddrinfo('example.com', 80)",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "import socket; socket.create_connection(('169.254.169.254', 80), 3)",
    ],
)
async def test_there_is_no_other_way_out(inside: Inside, program: str) -> None:
    ran = await inside.run(f'python3 -c "{program}"')
    assert ran.outcome.code == 1
    assert "rror" in ran.output.splitlines()[-1]
    assert inside.proxy.network.dialled == []


async def test_ports_of_the_host_are_not_those_of_the_sandbox(inside: Inside) -> None:
    assert inside.web.port
    ran = await inside.run(f"curl -sS --noproxy '*' http://127.0.0.1:{inside.web.port}/")
    assert ran.outcome.code == 7
    ran = await inside.run(
        f"curl -sS -x http://127.0.0.1:{inside.proxy.port} --noproxy '' http://127.0.0.1:{inside.web.port}/"
    )
    assert "which programs can never reach" in ran.output
    assert inside.web.received == []
