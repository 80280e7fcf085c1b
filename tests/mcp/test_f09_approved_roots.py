"""F09: MCP's own filesystem server reads a path outside the workspace after an approval, and only then."""

import asyncio
import json
from pathlib import Path

from mcp.client.client import Client
from tests.mcp.gate_client import open_gate_client
from tests.mcp.installed import filesystem_server
from tests.mcp.project import Project, ProxyProcess
from tests.mcp.toolset_harness import OpenToolset

from holdfast.core import PERSON, EscalationId, Response
from holdfast.core.events import EscalationOpened
from holdfast.mcp import Proxy, ServerSpec, format_for_client
from holdfast.world import WorldPaths

ALLOWED = "filesystem__list_allowed_directories"
ASKING = """\
policy: asking
rules:
  - name: ask
    escalate: "filesystem.*"
    because: it leaves the project
    outside: true
  - name: rest
    allow: "*"
"""


async def test_roots_grow_for_an_approved_call_and_shrink_after_it(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    outside.mkdir()
    (outside / "name.txt").write_text("kelp")
    paths = WorldPaths(workspace, guest_root=None)
    files = open_toolset(
        ServerSpec(name="filesystem", command=filesystem_server(), args=(str(workspace),)),
        format_result=format_for_client,
        paths=paths,
    )
    gate = await open_gate_client([files.toolset], {"filesystem.read_text_file": "escalate"}, paths=paths)
    proxy = Proxy(gate, servers=[files.toolset], has_other_approvers=True)

    asked: asyncio.Queue[EscalationId] = asyncio.Queue()
    gate.journal.follow(
        lambda entry: (
            asked.put_nowait(entry.event.escalation.id) if isinstance(entry.event, EscalationOpened) else None
        )
    )

    async def approve_next() -> None:
        escalation = await asked.get()
        await gate.resolve(escalation, Response(verdict="approve"), principal=PERSON, transport="test")

    async with Client(proxy.create_server().server, mode="legacy") as client:
        for _ in range(3):
            answering = asyncio.create_task(approve_next())
            read = await client.call_tool("filesystem__read_text_file", {"path": str(outside / "name.txt")})
            await answering
            assert read.structured_content == {"content": "kelp"}, read
            # The server takes the roots over in its own time.
            while "outside" in (allowed := str(await client.call_tool(ALLOWED, {}))):
                pass
            assert "workspace" in allowed


def test_the_example_of_the_proxy_by_file(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.configure(filesystem=[filesystem_server(), str(project.folder)])
    (project.home / "lab.yaml").write_text(ASKING)
    proxy = ProxyProcess(project)
    proxy.call("filesystem__read_text_file", path="/etc/hostname")
    proxy.wait_for(project.escalations)
    [request] = project.escalations()
    asked = json.loads(request.read_text())
    answer = {"decision": "approved", "digest": asked["digest"]}
    response = request.with_name(request.name.replace("request-", "response-"))
    response.write_text(json.dumps(answer))
    while "result" not in (answered := proxy.receive()):
        pass  # a notification
    assert Path("/etc/hostname").read_text().strip() in json.dumps(answered)
    assert not answered["result"].get("isError")
    proxy.hang_up()
