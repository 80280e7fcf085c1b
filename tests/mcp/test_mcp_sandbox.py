"""The sandbox of a server: the kernel enforces it, or the server does not run."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.installed import filesystem_server, python_server
from tests.mcp.toolset_harness import SERVERS, OpenToolset, ToolsetHarness, server_command

import holdfast.process.confine_server_main as confine_server_main
import holdfast.process.landlock as landlock
from holdfast.core.errors import InvalidConfig
from holdfast.mcp import load_servers
from holdfast.mcp.config.sandbox import Sandbox, confined_command, parse_sandbox

pytestmark = pytest.mark.skipif(
    landlock.version() < confine_server_main.MIN_LANDLOCK_VERSION,
    reason="this kernel cannot confine programs",
)
REFUSED = "refused: Permission denied"


def confined_probe(open_toolset: OpenToolset, sandbox: object, **options: Any) -> ToolsetHarness:
    """The probe server with a sandbox in its entry."""
    command, *arguments = server_command("sandbox_probe")
    entry = {"command": command, "args": arguments, "sandbox": sandbox}
    (spec,) = load_servers({"mcpServers": {"sandbox_probe": entry}})
    return open_toolset(spec, **options)


async def test_a_confined_server_writes_in_the_workspace_and_nowhere_else(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    harness = confined_probe(open_toolset, True)
    outside = tmp_path / "outside.txt"
    outside.write_text("precious")
    assert await harness.call("write", path="inside.txt") == "7"
    assert (tmp_path / "workspace" / "inside.txt").read_text() == "written"
    assert await harness.call("read", path=str(outside)) == "precious"
    for action in ("write", "truncate", "remove"):
        assert await harness.call(action, path=str(outside)) == REFUSED
    assert await harness.call("write", path=str(tmp_path / "new.txt")) == REFUSED
    assert str(await harness.call("shell", command=f"echo x > {outside}")) != "0"
    assert outside.read_text() == "precious"


async def test_a_confined_server_cannot_open_sockets(open_toolset: OpenToolset) -> None:
    harness = confined_probe(open_toolset, {"network": False})
    for kind in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"):
        assert await harness.call("connect", kind=kind) == REFUSED, kind


@pytest.mark.parametrize("network", [True, {"allowedDomains": ["*"]}])
async def test_a_confined_server_can_be_given_network_access(
    open_toolset: OpenToolset, network: object
) -> None:
    assert await confined_probe(open_toolset, {"network": network}).call("connect", kind="AF_INET") == "None"


async def test_denied_folders_cannot_be_read_except_for_allowed_parts(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets"
    (secrets / "public").mkdir(parents=True)
    for path in (secrets / "key", secrets / "public" / "key", tmp_path / "beside"):
        path.write_text("text")
    sandbox = {"filesystem": {"denyRead": [str(secrets)], "allowRead": [str(secrets / "public")]}}
    harness = confined_probe(open_toolset, sandbox)
    assert await harness.call("read", path=str(secrets / "key")) == REFUSED
    assert await harness.call("read", path=str(secrets / "public" / "key")) == "text"
    assert await harness.call("read", path=str(tmp_path / "beside")) == "text"
    link = tmp_path / "workspace" / "link"
    link.symlink_to(secrets / "key")
    assert await harness.call("read", path=str(link)) == REFUSED


async def test_a_confined_server_sees_only_its_workspace_of_the_data_directory(
    open_toolset: OpenToolset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    workspace = home / "sessions" / "one" / "workspace"
    workspace.mkdir(parents=True)
    (home / "holdfast.db").write_text("every word")
    (workspace / "note").write_text("mine")
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    (spec,) = load_servers(
        {
            "sandbox_probe": {
                "command": sys.executable,
                "args": [str(SERVERS / "sandbox_probe.py")],
                "sandbox": True,
            }
        }
    )
    harness = open_toolset(spec, workspace=workspace)
    assert await harness.call("read", path=str(home / "holdfast.db")) == REFUSED
    assert await harness.call("read", path="note") == "mine"


@pytest.mark.parametrize(
    ("sandbox", "words"),
    [
        ({"network": {"allowedDomains": ["example.com"]}}, "domains"),
        ({"network": {"allowedDomains": ["*"], "deniedDomains": ["example.com"]}}, "domains"),
        ({"filesystem": {"allowWrite": ["."], "denyWrite": [".git"]}}, "cannot be excluded"),
        ({"filesystem": {"allowWrite": ["a/b"], "denyWrite": ["a"]}}, "cannot be excluded"),
    ],
)
async def test_a_sandbox_that_cannot_be_enforced_keeps_the_server_from_running(
    open_toolset: OpenToolset, sandbox: object, words: str
) -> None:
    harness = confined_probe(open_toolset, sandbox)
    with pytest.raises(InvalidConfig, match=words) as refused:
        await harness.toolset.start()
    assert refused.value.hint
    assert not harness.toolset.is_running


@pytest.mark.parametrize("sandbox", ["strict", {"filesystems": {}}, {"network": {"allow": []}}, 1, []])
def test_an_invalid_sandbox_is_an_error(sandbox: object) -> None:
    with pytest.raises(InvalidConfig, match="server 'x'"):
        load_servers({"x": {"command": "x", "sandbox": sandbox}})


def test_an_address_cannot_have_a_sandbox() -> None:
    with pytest.raises(InvalidConfig, match="only a program"):
        load_servers({"x": {"url": "https://example.com/mcp", "sandbox": True}})


@pytest.mark.parametrize("sandbox", [None, False])
def test_null_and_false_mean_no_sandbox(sandbox: object) -> None:
    assert parse_sandbox(sandbox) is None


def test_nothing_starts_on_a_kernel_without_landlock(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    command = confined_command(
        Sandbox(), ["/usr/bin/touch", str(mark)], workspace=tmp_path, hidden=(), environ={}
    )
    launcher = [sys.executable, str(SERVERS / "without_landlock.py"), *command]
    done = subprocess.run(launcher, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == confine_server_main.REFUSED
    assert "cannot confine" in done.stderr
    assert "'sandbox': false" in done.stderr
    assert not mark.exists()


def test_everything_except_hidden_paths_stays_accessible(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
    kept = set(confine_server_main.all_but([str(tmp_path / "a" / "b"), str(tmp_path / "nothing-yet")]))
    assert {str(tmp_path / "a" / "d"), str(tmp_path / "e")} <= kept
    assert not {"/", str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")} & kept


async def test_real_servers_work_in_a_sandbox(open_toolset: OpenToolset, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(workspace)], check=True)
    document = {
        "filesystem": {"command": filesystem_server(), "args": [str(workspace)], "sandbox": True},
        "git": {"command": python_server("mcp-server-git"), "sandbox": {"network": False}},
    }
    files, git = (open_toolset(spec) for spec in load_servers({"mcpServers": document}))
    await files.call("write_file", path=str(workspace / "a.txt"), content="hi")
    await git.call("git_add", repo_path=str(workspace), files=["a.txt"])
    assert "new file:   a.txt" in str(await git.call("git_status", repo_path=str(workspace)))
