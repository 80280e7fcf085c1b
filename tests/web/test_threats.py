"""Who is not the person: other users, sandboxed agents, their programs and their tools. After each, the call still waits."""

import http.server
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.guests.engines import KEY
from tests.installed_programs import cache_folder
from tests.mcp.installed import python_server
from tests.web.conftest import WebServer, running_server
from tests.web.http import send
from tests.web.sample_home import fill

from holdfast.app import Runtime
from holdfast.commands import ShellSettings, SystemSandboxes, probe_sandbox
from holdfast.core import ArgumentRoles, Call, Tool, call_id
from holdfast.core.errors import InvalidInput
from holdfast.guests import Engines, Sandbox
from holdfast.mcp import ServerSpec
from holdfast.policy import FixedPolicy, Request, Resolver, load_policy
from holdfast.services import check_proposed, request_for, with_known_tools
from holdfast.session import Settings
from holdfast.store import Home
from holdfast.web import serve_web
from holdfast.web.peer import peer_uid
from holdfast.world import FolderWorld, WorldPaths

pytestmark = pytest.mark.timeout(600)
"""A server on a slow machine takes its time."""

ALLOWS_ALL = FixedPolicy(default="allow")
ENTER = """
import json, os, sys, urllib.error, urllib.request
url, code = sys.argv[1:]
body = json.dumps({"code": code}).encode()
headers = {"Origin": url.rstrip("/"), "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
def ask():
    try:
        urllib.request.urlopen(url + "api/row", timeout=60)
    except urllib.error.HTTPError as refusal:
        json.load(refusal)
try:
    urllib.request.urlopen(urllib.request.Request(url + "api/enter", body, headers), timeout=60)
    print("entered")
except urllib.error.HTTPError as refusal:
    print(json.load(refusal)["code"])
"""


@pytest.fixture
def waiting(server: WebServer) -> Iterator[WebServer]:
    """A server with one call that waits, which nothing here answers."""
    if not (server.home / "holdfast" / "teams.yaml").exists():
        import asyncio

        asyncio.run(fill(server.home / "holdfast", waiting=("target.txt",)))
    yield server
    [call] = send(server.url, "GET", "/api/waiting", token=server.token).data
    assert "target.txt" in call["effect"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine_cannot_enter_even_with_the_code(tmp_path: Path) -> None:
    with running_server(tmp_path, enters=False) as server:
        code = server.link.partition("enter=")[2]
        words = [sys.executable, "-I", "-c", ENTER, server.url, code]
        # The folders of this Python may be closed to others: everything is loaded by a request before it becomes another user.
        program = ENTER.replace("\ntry:", "\nask()\nos.setgid(65534)\nos.setuid(65534)\ntry:")
        other = subprocess.run(
            [sys.executable, "-I", "-c", program, server.url, code],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (other.stdout.strip(), other.stderr) == ("not-allowed", "")
        own = subprocess.run(words, capture_output=True, text=True, check=False)
        assert own.stdout.strip() == "entered", own.stderr


def test_the_kernel_names_the_user_of_a_connection() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            host, own = client.getsockname()
            assert peer_uid(host, own, port) == os.geteuid()
    assert peer_uid("127.0.0.1", 1, port) is None


@pytest.mark.parametrize(
    "origin",
    [
        "http://box.example",
        "box.example",
        "https://",
        "https://a/b",
        "https://a@b",
        "*",
        "https://a b",
        "null",
    ],
)
async def test_other_machines_need_a_name_with_tls(tmp_path: Path, origin: str) -> None:
    runtime = await Runtime.start(home=tmp_path / "holdfast", settings=Settings(), servers=())
    try:
        with pytest.raises(InvalidInput, match="not an origin"):
            async with serve_web(runtime, port=0, origin=origin):
                pass
    finally:
        await runtime.close()


async def test_the_server_listens_on_this_machine_only(tmp_path: Path) -> None:
    runtime = await Runtime.start(home=tmp_path / "holdfast", settings=Settings(), servers=())
    try:
        async with serve_web(runtime, port=0, origin="https://box.example") as running:
            listed = Path("/proc/net/tcp").read_text().splitlines()[1:]
            bound = [line.split()[1] for line in listed if line.split()[1].endswith(f":{running.port:04X}")]
            listening = {each for each in bound if each.startswith(("0100007F", "00000000"))}
            assert listening == {f"0100007F:{running.port:04X}"}
            assert running.link().startswith("https://box.example/#enter=")
    finally:
        await runtime.close()


@pytest.mark.parametrize("sandbox", ["python", "wasi", "system", "lisp"])
async def test_code_of_an_agent_reaches_no_port(waiting: WebServer, tmp_path: Path, sandbox: Sandbox) -> None:
    port = waiting.url.rstrip("/").rpartition(":")[2]
    code = f"import socket\ns = socket.create_connection(('127.0.0.1', {port}))\nprint('reached')"
    if sandbox == "lisp":
        code = f'(begin (open-socket "127.0.0.1" {port}) "reached")'
    if sandbox == "system" and (await probe_sandbox(cache_folder("sandbox"))).tier != "full":
        pytest.skip("the full sandbox does not stand here")
    engines = Engines(key=KEY, cache=cache_folder("wasi")) if sandbox == "wasi" else None
    runtime = await Runtime.start(
        home=waiting.home / "holdfast", settings=Settings(), servers=(), engines=engines
    )
    try:
        session = await runtime.create(policy=ALLOWS_ALL, sandbox=sandbox, needs_model=False)
        outcome = await session.execute(code)
        assert "reached" not in str(outcome)
        assert type(outcome).__name__ == "Error", outcome
        await session.close()
    finally:
        await runtime.close()


async def test_a_program_in_the_command_sandbox_reaches_no_port(waiting: WebServer, tmp_path: Path) -> None:
    sandboxes = SystemSandboxes(tmp_path / "cache")
    (tmp_path / "cache").mkdir()
    if (await sandboxes.probe()).tier == "none":
        pytest.skip("no command sandbox works here")
    folder = tmp_path / "project"
    folder.mkdir()
    address = waiting.url.removeprefix("http://").rstrip("/").replace(":", "/")
    # A path of bash, so that no other program is needed.
    command = f"bash -c 'exec 3<>/dev/tcp/{address} && echo reached || echo refused'"
    done = await check_proposed(
        FolderWorld(folder), command, sandboxes=sandboxes, settings=ShellSettings(toolchains=())
    )
    assert "reached" not in done.output
    assert "refused" in done.output


def own_urls(server: WebServer) -> list[str]:
    """The page under every name of this machine that a tool may try."""
    port = server.url.rstrip("/").rpartition(":")[2]
    hosts = [
        "127.0.0.1",
        "localhost",
        "LOCALHOST.",
        "[::1]",
        "0.0.0.0",
        "[::]",
        "127.1",
        "0x7f000001",
        "127.8.9.1",
    ]
    hosts += ["[::ffff:127.0.0.1]", "127.0.0.1.nip.io", "lvh.me", "a.localhost", os.uname().nodename]
    return [f"http://{host}:{port}/api/waiting" for host in hosts]


async def test_a_fetch_tool_is_denied_our_own_page_whatever_the_rules_allow(
    waiting: WebServer, tmp_path: Path
) -> None:
    spec = ServerSpec(
        name="fetch",
        command=python_server("mcp-server-fetch"),
        args=("--ignore-robots-txt", "--allow-private-ips"),
    )
    runtime = await Runtime.start(home=waiting.home / "holdfast", settings=Settings(), servers=(spec,))
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    try:
        session = await runtime.create(workspace=tmp_path, policy=ALLOWS_ALL, needs_model=False)
        for url in own_urls(waiting):
            await session.execute(f"fetch.fetch(url={url!r}, raw=True)")
        refused = [(each.result, each.decision.rule) for each in session.audit()]
        assert refused == [("refused", "structural-protected-host")] * len(own_urls(waiting))
        # The same rule lets it reach another port of this machine, and the same words are shown before a call is made.
        elsewhere = f"http://127.0.0.1:{other.server_address[1]}/"
        other.server_close()  # nobody answers, at once
        await session.execute(f"fetch.fetch(url={elsewhere!r}, raw=True)")
        assert session.audit()[-1].decision.verdict == "allow"
    finally:
        await runtime.close()


@pytest.mark.parametrize("named", ["localhost", "127.0.0.1"])
async def test_a_rule_that_names_this_machine_does_not_open_our_own_page(
    waiting: WebServer, tmp_path: Path, named: str
) -> None:
    file = tmp_path / "open.yaml"
    file.write_text(
        f"policy: open\nrules:\n  - name: here\n    allow: [web.fetch, net.connect]\n    hosts: ['{named}']\n    because: mine\n"
        "tools:\n  web.fetch:\n    url: fetch-url\n"
    )
    policy = with_known_tools(
        load_policy(str(file), is_checked=False), Home(waiting.home / "holdfast"), is_annotated=False
    )
    port = int(waiting.url.rstrip("/").rpartition(":")[2])
    for open_port, rule in ((port, "structural-protected-host"), (port + 1, "here")):
        for call in (
            {"operation": "web.fetch", "arguments": {"url": f"http://{named}:{open_port}/"}},
            {"operation": "net.connect", "arguments": {"host": named, "port": open_port}},
        ):
            request = await request_for(
                policy,
                json.dumps(call),
                workspace=tmp_path,
                protected=(),
                tier="full",
                home=Home(waiting.home / "holdfast"),
            )
            assert policy.judge(request).rule == rule, call


async def test_a_fetch_tool_is_not_let_to_this_machine_by_a_star(waiting: WebServer, tmp_path: Path) -> None:
    """The policy lets `*` reach the public internet only; a tool that gets through anyway has no token."""
    text = (
        "policy: web\nrules:\n  - name: fetch\n    allow: [web.fetch]\n    hosts: ['*']\n    because: pages\n"
    )
    file = tmp_path / "web.yaml"
    file.write_text(text)
    policy = load_policy(str(file), is_checked=False)
    tool = Tool(name="web.fetch", roles={"url": ArgumentRoles(default=("fetch-url",))})
    for url, verdict in (
        (f"{waiting.url}api/waiting", "deny"),
        (waiting.url.replace("127.0.0.1", "localhost"), "deny"),
        ("http://[::1]:7788/api/waiting", "deny"),
        ("http://0x7f000001/", "deny"),
        ("https://example.com/", "allow"),
    ):
        call = Call(id=call_id(1, 1), operation="web.fetch", arguments={"url": url})
        targets = await Resolver().targets(tool, call.arguments, WorldPaths(tmp_path, protected=[]))
        assert policy.judge(Request(call=call, tool=tool, targets=targets)).verdict == verdict, url
    [call_shown] = send(waiting.url, "GET", "/api/waiting", token=waiting.token).data
    path = f"/api/waiting/{call_shown['session']}/{call_shown['escalation']['id']}"
    body = {"verdict": "approve", "digest": call_shown["escalation"]["digest"]}
    assert send(waiting.url, "POST", path, body=body).status == 401
    assert send(waiting.url, "GET", "/api/waiting").status == 401
    assert send(waiting.url, "POST", path, token="x" * 43, body=body).status == 401


def test_every_threat_has_tests_that_exist() -> None:
    page = Path(__file__).parents[2] / "docs" / "security" / "web.md"
    rows = [line.split("|")[1:-1] for line in page.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    code = "".join(each.read_text() for each in Path(__file__).parent.glob("test_*.py"))
    for threat, _, tests in rows:
        named = re.findall(r"`(test_\w+)`", tests)
        assert named, threat
        assert [each for each in named if f"def {each}(" not in code] == [], threat
