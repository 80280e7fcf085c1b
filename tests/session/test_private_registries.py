"""A registry of a company lies in a private network: programs reach it if the person's own configuration names it."""

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest

from holdfast.app import Runtime
from holdfast.commands import ScriptedProcess, ScriptedSandboxes, ShellSettings
from holdfast.commands.network.addresses import SystemNetwork
from holdfast.core import Escalation, Response
from holdfast.models import ScriptedModel, use
from holdfast.session import Settings

PRIVATE = "10.1.2.3"
HOSTS = """\
policy: hosts
rules:
  - {name: commands, allow: "shell.*"}
  - {name: registries, allow: net.connect, hosts: ["group:package-registries", other.example]}
"""


class PrivateNetwork:
    """Every name has one address, where a server answers. The lookup and the dialled addresses replace the system's."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.dialled: list[tuple[str, int]] = []
        self.port = 0

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        return (self.address,)

    async def connect(self, address: str, port: int) -> socket.socket:
        self.dialled.append((address, port))
        connection = socket.socket()
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.port))
        return connection

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        writer.close()


async def fetch(process: ScriptedProcess) -> int:
    """Ask the proxy for a URL, and print the first line of its answer."""
    proxy = urlsplit(process.environment["http_proxy"])
    reader, writer = await asyncio.open_connection(proxy.hostname, proxy.port)
    url = process.argv[1]
    writer.write(f"GET {url} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n\r\n".encode())
    process.print((await reader.readline()).decode())
    writer.close()
    return 0


async def reached(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    address: str,
    *,
    private_hosts: tuple[str, ...] = (),
    answer: Response | None = None,
    asked: list[Escalation] | None = None,
) -> list[tuple[str, int]]:
    """What is dialled when a program of a session asks for a URL whose host has this address."""
    network = PrivateNetwork(address)
    monkeypatch.setattr(SystemNetwork, "resolve", lambda _, host, port: network.resolve(host, port))
    monkeypatch.setattr(SystemNetwork, "connect", lambda _, address, port: network.connect(address, port))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    policy = tmp_path / "hosts.yaml"
    policy.write_text(HOSTS)
    (tmp_path / "project").mkdir(exist_ok=True)
    server = await asyncio.start_server(network.answer, "127.0.0.1", 0)
    network.port = server.sockets[0].getsockname()[1]
    runtime = await Runtime.start(
        home=tmp_path / "home",
        settings=Settings(acts_with="tools", shell=ShellSettings(private_hosts=private_hosts)),
        servers=(),
        sandboxes=ScriptedSandboxes({"fetch": fetch}),
    )
    try:
        model = ScriptedModel([use("shell__run", {"argv": ["fetch", url]}), "Done."])
        session = await runtime.create(
            model=model, workspace=tmp_path / "project", policy=str(policy), can_ask=answer is not None
        )
        sending = asyncio.create_task(session.send("install it"))
        if answer is not None and asked is not None:
            while not sending.done() and not asked:
                asked += session.escalations()
                await asyncio.sleep(0.01)
            if asked:
                await session.resolve(asked[0].id, answer)
        await sending
    finally:
        await runtime.close()
        server.close()
    return network.dialled


@pytest.mark.parametrize(
    ("url", "dialled"),
    [
        ("http://packages.example/a", [(PRIVATE, 80)]),
        ("http://packages.example:3141/a", [(PRIVATE, 3141)]),
        ("http://packages.example:443/a", []),
        ("http://other.example/a", []),
    ],
)
async def test_a_registry_that_the_person_configured_may_be_in_a_private_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, dialled: list[tuple[str, int]]
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://packages.example/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://packages.example:3141/simple")
    assert await reached(tmp_path, monkeypatch, url, PRIVATE) == dialled


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "169.254.169.254", "100.100.100.200", "0.0.0.0"])
async def test_a_configured_registry_is_never_this_machine_or_a_metadata_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://packages.example/simple")
    assert await reached(tmp_path, monkeypatch, "http://packages.example/a", address) == []


async def test_a_registry_that_only_the_project_names_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pip.conf").write_text("[global]\nindex-url = http://other.example/simple\n")
    (project / ".npmrc").write_text("registry=http://other.example/\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(project / "pip.conf"))
    assert await reached(tmp_path, monkeypatch, "http://other.example/a", PRIVATE) == []
    assert await reached(tmp_path, monkeypatch, "http://other.example/a", "93.184.215.14") == [
        ("93.184.215.14", 80)
    ], "its public address is reached, because the policy names the host"


@pytest.mark.parametrize("address", [PRIVATE, "203.0.113.80"])
async def test_a_host_that_config_names_as_private_is_reached_without_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    found = await reached(
        tmp_path, monkeypatch, "http://other.example/a", address, private_hosts=("other.example",)
    )
    assert found == [(address, 80)]


@pytest.mark.parametrize("host", ["*", "*.example", "localhost", "Other.Example", "http://other.example"])
def test_only_exact_names_can_be_private_hosts(host: str) -> None:
    with pytest.raises(ValueError, match="private_hosts"):
        ShellSettings(private_hosts=(host,))


@pytest.mark.parametrize(("verdict", "dialled"), [("approve", [(PRIVATE, 80)]), ("deny", [])])
async def test_a_person_is_asked_about_the_private_address_of_an_allowed_host(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verdict: Literal["approve", "deny"],
    dialled: list[tuple[str, int]],
) -> None:
    asked: list[Escalation] = []
    answer = Response(verdict=verdict)
    found = await reached(
        tmp_path, monkeypatch, "http://other.example/a", PRIVATE, answer=answer, asked=asked
    )
    assert found == dialled
    assert [each.call.arguments["address"] for each in asked] == [PRIVATE]
    assert f"other.example is at {PRIVATE}" in asked[0].decision.reason
    assert asked[0].offers == ()
