"""What a server with open schemas cannot be asked: arguments without a role, and folders with a repository in them.

The same call gets the same answer in a session, through the proxy, from the hook of Claude Code and in `policy check`.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.project import Project
from tests.mcp.toolset_harness import server_command

from holdfast.app import Runtime
from holdfast.models import ScriptedModel, use
from holdfast.policy import load_policy
from holdfast.session import Settings

POLICY = """\
policy: lab
rules:
  - name: inside
    allow: "*"
    roles: [read-path, write-path, delete-path]
    inside: true
    because: it stays inside
"""
ROLES = {
    "move": {"source": ["read-path", "delete-path"], "destination": ["write-path"]},
    "copy": {"source": ["read-path"], "destination": ["write-path"]},
    "delete": {"path": ["delete-path"]},
}


@pytest.fixture
def lab(project: Project) -> Project:
    """A project with a file server, whose tools have roles for the arguments they are known to have."""
    project.configure(mover=server_command("mover"))
    tools = [{"toolName": name, "args": args} for name, args in ROLES.items()]
    (project.home / "tool-annotations.json").write_text(json.dumps({"servers": {"mover": {"tools": tools}}}))
    (project.home / "lab.yaml").write_text(POLICY)
    return project


async def by_proxy(lab: Project, tool: str, arguments: dict[str, Any]) -> str:
    async with lab.proxy_client() as client:
        answer = await client.call_tool(f"mover.{tool}", arguments)
    return str(getattr(answer.content[0], "text", ""))


async def by_session(lab: Project, tool: str, arguments: dict[str, Any]) -> str:
    model = ScriptedModel([use(f"mover__{tool}", arguments), "done"])
    runtime = await Runtime.start(home=lab.home, settings=Settings(acts_with="tools"))
    try:
        policy = load_policy(str(lab.home / "lab.yaml"))
        session = await runtime.create(workspace=lab.folder, policy=policy, model=model)
        await session.send("go")
        return str(session.audit())
    finally:
        await runtime.close()


async def by_check(lab: Project, tool: str, arguments: dict[str, Any]) -> str:
    call = json.dumps({"operation": f"mover.{tool}", "arguments": arguments})
    done = await asyncio.to_thread(
        lab.spawn,
        "policy",
        "check",
        "--policy",
        str(lab.home / "lab.yaml"),
        "--workspace",
        ".",
        "--call",
        call,
        "--json",
    )
    return done.stdout + done.stderr


async def by_hook(lab: Project, tool: str, arguments: dict[str, Any]) -> str:
    """The built-in tools of Claude Code are the agent's own; these three stand for new ones that a person annotated."""
    tools = [{"toolName": f"X{name}", "args": args} for name, args in ROLES.items()]
    (lab.home / "tool-annotations.json").write_text(json.dumps({"servers": {"claude": {"tools": tools}}}))
    asked = {"session_id": "c0ffee", "cwd": str(lab.folder), "tool_name": f"X{tool}", "tool_input": arguments}
    words = ("hook", "claude", "-p", str(lab.home / "lab.yaml"))
    return (await asyncio.to_thread(lab.spawn, *words, stdin=json.dumps(asked))).stdout


DOORS = {"proxy": by_proxy, "session": by_session, "check": by_check, "hook": by_hook}
doors = pytest.mark.parametrize("door", DOORS)


@doors
@pytest.mark.parametrize("more", [{"file": "/outside/f"}, {"options": {"file": "/outside/f"}}])
@pytest.mark.promise("P04")
async def test_f42_an_argument_without_a_role_is_denied_by_every_door(
    lab: Project, door: str, more: dict[str, Any]
) -> None:
    (lab.folder / "old").mkdir()
    shown = await DOORS[door](lab, "delete", {"path": str(lab.folder / "old"), **more})
    # The built-in tools of an agent have closed schemas, which refuse the name before the roles are read.
    assert ("invalid-arguments" if door == "hook" else "has no role") in shown
    assert (lab.folder / "old").is_dir()


def plain(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True)


def nested(folder: Path) -> None:
    plain(folder / "a" / "b")


def bare(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", folder / "store.git"], check=True)


def worktree(folder: Path) -> None:
    (folder / "tree").mkdir(parents=True)
    (folder / "tree" / ".git").write_text("gitdir: ../../elsewhere/.git/worktrees/tree\n")


def submodule(folder: Path) -> None:
    plain(folder)
    (folder / "sub").mkdir()
    (folder / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n")


def settings(folder: Path) -> None:
    (folder / "deep" / ".holdfast").mkdir(parents=True)
    (folder / "deep" / ".holdfast" / "policy.yaml").write_text("policy: mine\n")


KINDS: dict[str, Callable[[Path], None]] = {
    each.__name__: each for each in (plain, nested, bare, worktree, submodule, settings)
}


def everything(folder: Path) -> list[str]:
    return sorted(
        os.path.join(at, name) for at, folders, files in os.walk(folder) for name in folders + files
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.promise("P03")
async def test_f41_a_server_can_not_move_copy_or_delete_a_folder_with_a_repository(
    lab: Project, kind: str
) -> None:
    KINDS[kind](lab.folder / "parent" / "code")
    before = everything(lab.folder)
    async with lab.proxy_client() as client:
        for place in ("parent", "parent/code"):
            here, there = str(lab.folder / place), str(lab.folder / "elsewhere")
            for tool, arguments in (
                ("delete", {"path": here}),
                ("move", {"source": here, "destination": there}),
                ("copy", {"source": here, "destination": there}),
            ):
                answer = await client.call_tool(f"mover.{tool}", arguments)
                assert answer.is_error
                assert "git" in str(answer.content[0]) or "protected" in str(answer.content[0])
                assert everything(lab.folder) == before, tool


@doors
@pytest.mark.promise("P03")
async def test_f41_every_door_refuses_a_folder_with_a_repository_and_takes_one_without(
    lab: Project, door: str
) -> None:
    nested(lab.folder / "parent")
    (lab.folder / "old" / "empty").mkdir(parents=True)
    closed = await DOORS[door](lab, "delete", {"path": str(lab.folder / "parent")})
    assert "change the repository by running git" in closed
    assert (lab.folder / "parent" / "a" / "b" / ".git").is_dir()
    opened = await DOORS[door](lab, "delete", {"path": str(lab.folder / "old")})
    if door in ("proxy", "session"):
        assert not (lab.folder / "old").exists(), opened
    else:
        assert '"allow"' in opened
