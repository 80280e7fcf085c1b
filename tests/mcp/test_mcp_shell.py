"""Programs of other agents: the proxy offers `shell.*`, and Claude Code's own commands run in the sandbox."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.installed_programs import cache_folder
from tests.mcp.project import Project
from tests.mcp.test_mcp_claude_code import ClaudeProject, respond
from tests.support.provider_stub import StubServer
from tests.teams.claude_program import claude_program

from holdfast.commands import probe_sandbox
from holdfast.core.errors import InvalidInput
from holdfast.mcp import plan

POLICY = """\
policy: lab
rules:
  - {name: programs, allow: "shell.*"}
  - {name: read, allow: "*", roles: [read-path], inside: true}
  - {name: keep, deny: "world.*", roles: [write-path, delete-path], paths: ["kept.txt"]}
  - {name: propose, stage: "world.*", roles: [write-path, delete-path], inside: true}
"""


@pytest.fixture(autouse=True)
def _full_sandbox() -> None:
    if asyncio.run(probe_sandbox(cache_folder("sandbox"))).tier != "full":
        pytest.skip("the full sandbox does not stand here")


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_the_proxy_runs_programs_and_their_changes_become_proposals(
    tmp_path: Path, protocol: str
) -> None:
    project = Project(tmp_path)
    project.configure()
    (project.home / "lab.yaml").write_text(POLICY)
    (project.folder / "a.txt").write_text("one\n")
    async with project.proxy_client("--shell", "-n", "agent", protocol=protocol) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"shell__run", "shell__start", "shell__read", "shell__write", "shell__stop"} <= names
        assert not [name for name in names if name.startswith("world") or name == "shell__python"]
        script = "echo two >> a.txt && echo x > kept.txt && cat a.txt"
        first: Any = (await client.call_tool("shell__run", {"script": script})).structured_content
        assert (first["code"], first["output"]) == (0, "one\ntwo\n")
        assert first["changes"] == [{"path": "a.txt", "kind": "modified", "verdict": "staged"}]
        assert first["refused"][0]["path"] == "kept.txt"
        seen = await asyncio.to_thread(project.run, "proposals", "show", "agent")
        assert "+two" in seen.stdout, "a proposal can be seen as soon as the call has ended"
        second: Any = (await client.call_tool("shell__run", {"argv": ["cat", "a.txt"]})).structured_content
        assert second["output"] == "one\ntwo\n", "the next program sees what the first one changed"
    assert (project.folder / "a.txt").read_text() == "one\n"
    shown = await asyncio.to_thread(project.run, "proposals", "commit", "agent")
    assert shown.returncode == 0, shown.stderr
    assert (project.folder / "a.txt").read_text() == "one\ntwo\n"


async def test_a_policy_without_programs_offers_none(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.configure()
    async with project.proxy_client("--shell", "-p", "safe-analysis") as client:
        assert (await client.list_tools()).tools == []


async def test_the_commands_of_claude_code_run_in_the_sandbox(tmp_path: Path) -> None:
    claude_program()  # skips the test before anything is opened
    async with StubServer(respond) as stub:
        project = ClaudeProject(tmp_path, stub)
        project.policy.write_text(POLICY)
        await project.install("--sandbox-bash")
        output = await project.claude(
            ("Bash", {"command": "echo made > new.txt && cat new.txt", "description": "make a file"}),
            ("Bash", {"command": "cat new.txt new.txt", "description": "read it"}),
            ("Bash", {"command": "sleep 60", "description": "wait", "run_in_background": True}),
            options=("--allowedTools", "Bash"),
        )
        assert "made\\nmade" in output
        assert "in the background" in output
        assert not (project.folder / "new.txt").exists()
        listed = json.loads(await project.output_of(str(project.program), "sessions", "--json"))
        [commands] = [each["id"] for each in listed if each["id"].endswith("-commands")]
        assert "+made" in await project.output_of(str(project.program), "proposals", "show", commands)


def test_only_claude_code_has_a_hook_for_its_commands(tmp_path: Path) -> None:
    options = {"command": ("holdfast",), "folder": tmp_path, "home": tmp_path, "is_for_user": False}
    claude = plan("claude", sandboxes_bash=True, **options)  # type: ignore[arg-type]
    assert any("hook claude --sandbox-bash || exit 2" in change.after for change in claude.changes)
    cursor = plan("cursor", has_shell=True, **options)  # type: ignore[arg-type]
    assert '"--shell"' in cursor.changes[0].after
    with pytest.raises(InvalidInput, match="has no hook"):
        plan("codex", sandboxes_bash=True, **options)  # type: ignore[arg-type]
