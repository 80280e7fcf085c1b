"""Escalations of the proxy: none stays open when no client waits for its answer any more."""

import asyncio
import json
import signal
import subprocess
from contextlib import suppress

from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from tests.mcp.project import Project, ProxyProcess
from tests.support.fork_server import forked_python
from tests.support.http_standin import http_standin


def waiting(project: Project) -> list[str]:
    """The operations that wait for approval."""
    listed = json.loads(project.run("waiting", "--json").stdout)
    return [each["escalation"]["call"]["operation"] for each in listed]


def proxy_with_escalation(project: Project) -> ProxyProcess:
    """A proxy with one call that waits for approval."""
    project.configure_friendly()
    proxy = ProxyProcess(project)
    proxy.call("friendly__echo", text="hello")
    proxy.wait_for(project.escalations)
    return proxy


def recorded_call(project: Project) -> dict[str, object]:
    """The one call in the record of the first session."""
    sessions = json.loads(project.run("sessions", "--json").stdout)
    first = min(sessions, key=lambda each: each["created_ms"])
    (entry,) = json.loads(project.run("audit", first["id"], "--json").stdout)
    return dict(entry)


def test_an_escalation_ends_with_the_proxy(project: Project) -> None:
    proxy = proxy_with_escalation(project)
    assert waiting(project) == ["friendly.echo"]
    code, _ = proxy.hang_up()
    assert code == 0
    assert waiting(project) == []
    entry = recorded_call(project)
    assert (entry["result"], entry["approver"]) == ("cancelled", "external")


async def test_a_call_that_waits_in_the_proxy_is_notified(project: Project) -> None:
    async with http_standin() as server:
        (project.home / "config.toml").write_text(
            f'[notify.targets.hook]\nkind = "webhook"\nurl = "{server.url}"\nafter_seconds = 0\ntopics = ["waits"]\n'
        )
        proxy = await asyncio.to_thread(proxy_with_escalation, project)
        [request] = await server.received(1)
        await asyncio.to_thread(proxy.hang_up)
    assert json.loads(request.body)["text"].startswith("1 call waits for your approval in session ")
    assert b"hello" not in request.body


def test_a_new_proxy_closes_the_escalation_of_a_killed_proxy_and_of_no_other(project: Project) -> None:
    killed = proxy_with_escalation(project)
    killed.kill()
    assert waiting(project) == ["friendly.echo"]
    living = ProxyProcess(project)
    assert waiting(project) == []
    assert recorded_call(project)["result"] == "cancelled"
    living.call("friendly__echo", text="hello")
    living.wait_for(lambda: waiting(project))
    ProxyProcess(project).hang_up()
    assert waiting(project) == ["friendly.echo"]
    living.hang_up()
    assert waiting(project) == []


def test_a_cancelled_call_closes_its_escalation_and_sigterm_ends_the_proxy_normally(project: Project) -> None:
    proxy = proxy_with_escalation(project)
    proxy.send("notifications/cancelled", {"requestId": 2, "reason": "no longer needed"})
    proxy.wait_for(lambda: not waiting(project))
    proxy.call("friendly__echo", text="hello again")
    proxy.wait_for(project.escalations)
    proxy.process.send_signal(signal.SIGTERM)
    proxy.process.communicate(timeout=60)
    assert proxy.process.returncode == 0
    assert waiting(project) == []


async def test_a_proxy_over_http_ends_quietly_while_a_client_listens(project: Project) -> None:
    project.configure_friendly()
    command = forked_python("-m", "holdfast", "proxy", "--http", "0", "-p", str(project.home / "lab.yaml"))
    proxy = await asyncio.create_subprocess_exec(
        *command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=project.folder,
        env=project.environment,
    )
    assert proxy.stdout is not None
    address = json.loads((await proxy.stdout.readuntil(b"}\n}\n")).decode())
    async with create_mcp_http_client(headers=address["headers"]) as http:
        with suppress(MCPError, ExceptionGroup):
            async with Client(
                streamable_http_client(address["url"], http_client=http), mode="legacy"
            ) as client:
                assert (await client.list_tools()).tools
                proxy.send_signal(signal.SIGTERM)
                _, errors = await proxy.communicate()
    assert proxy.returncode == 0
    lines = errors.decode().splitlines()
    assert lines == [line for line in lines if "9 tools" in line]
