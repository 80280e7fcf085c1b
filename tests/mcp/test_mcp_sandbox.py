"""A server whose entry asks for a sandbox is held to it by the kernel, or does not run."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.bench import SERVERS, Bench, Opener
from tests.mcp.installed import filesystem_server, python_server

import holdfast.process.confine_server_main as confine_server_main
import holdfast.process.landlock as landlock
from holdfast.core.errors import InvalidConfig
from holdfast.mcp import load_servers
from holdfast.mcp.config.sandbox import Sandbox, confined, read_sandbox

pytestmark = pytest.mark.skipif(
    landlock.version() < confine_server_main.MIN_LANDLOCK_VERSION,
    reason="this kernel cannot confine programs",
)
REFUSED = "refused: Permission denied"


def caged(opened: Opener, sandbox: object, **fields: Any) -> Bench:
    """The probing server with a sandbox in its entry."""
    entry = {"command": sys.executable, "args": [str(SERVERS / "probing.py")], "sandbox": sandbox}
    (spec,) = load_servers({"mcpServers": {"probing": entry | fields}})
    return opened(spec)


async def test_a_confined_server_writes_in_the_workspace_and_nowhere_else(
    opened: Opener, tmp_path: Path
) -> None:
    bench = caged(opened, True)
    outside = tmp_path / "outside.txt"
    outside.write_text("precious")
    assert await bench.call("write", path="inside.txt") == "7"
    assert (tmp_path / "workspace" / "inside.txt").read_text() == "written"
    assert await bench.call("read", path=str(outside)) == "precious"
    for deed in ("write", "empty", "remove"):
        assert await bench.call(deed, path=str(outside)) == REFUSED
    assert await bench.call("write", path=str(tmp_path / "new.txt")) == REFUSED
    assert str(await bench.call("shell", command=f"echo x > {outside}")) != "0"
    assert outside.read_text() == "precious"


@pytest.mark.parametrize("kind", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"])
async def test_a_confined_server_has_no_sockets(opened: Opener, kind: str) -> None:
    assert await caged(opened, {"network": False}).call("connect", kind=kind) == REFUSED


@pytest.mark.parametrize("network", [True, {"allowedDomains": ["*"]}])
async def test_a_confined_server_may_be_given_the_network(opened: Opener, network: object) -> None:
    assert await caged(opened, {"network": network}).call("connect", kind="AF_INET") == "None"


async def test_what_is_denied_is_not_read_but_for_what_is_allowed_in_it(
    opened: Opener, tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets"
    (secrets / "public").mkdir(parents=True)
    for path in (secrets / "key", secrets / "public" / "key", tmp_path / "beside"):
        path.write_text("text")
    sandbox = {"filesystem": {"denyRead": [str(secrets)], "allowRead": [str(secrets / "public")]}}
    bench = caged(opened, sandbox)
    assert await bench.call("read", path=str(secrets / "key")) == REFUSED
    assert await bench.call("read", path=str(secrets / "public" / "key")) == "text"
    assert await bench.call("read", path=str(tmp_path / "beside")) == "text"
    link = tmp_path / "workspace" / "link"
    link.symlink_to(secrets / "key")
    assert await bench.call("read", path=str(link)) == REFUSED


async def test_our_home_is_hidden_from_a_confined_server_but_for_its_workspace(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    workspace = home / "sessions" / "one" / "workspace"
    workspace.mkdir(parents=True)
    (home / "holdfast.db").write_text("every word")
    (workspace / "note").write_text("mine")
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    (spec,) = load_servers(
        {"probing": {"command": sys.executable, "args": [str(SERVERS / "probing.py")], "sandbox": True}}
    )
    bench = opened(spec, workspace=workspace)
    assert await bench.call("read", path=str(home / "holdfast.db")) == REFUSED
    assert await bench.call("read", path="note") == "mine"


@pytest.mark.parametrize(
    ("sandbox", "words"),
    [
        ({"network": {"allowedDomains": ["example.com"]}}, "domains"),
        ({"network": {"allowedDomains": ["*"], "deniedDomains": ["example.com"]}}, "domains"),
        ({"filesystem": {"allowWrite": ["."], "denyWrite": [".git"]}}, "taken back"),
        ({"filesystem": {"allowWrite": ["a/b"], "denyWrite": ["a"]}}, "taken back"),
    ],
)
async def test_what_cannot_be_enforced_is_refused_and_the_server_does_not_run(
    opened: Opener, sandbox: object, words: str
) -> None:
    bench = caged(opened, sandbox)
    with pytest.raises(InvalidConfig, match=words) as refused:
        await bench.toolset.start()
    assert refused.value.hint
    assert not bench.toolset.is_running


@pytest.mark.parametrize("sandbox", ["strict", {"filesystems": {}}, {"network": {"allow": []}}, 1, []])
def test_a_sandbox_that_is_not_understood_is_an_error(sandbox: object) -> None:
    with pytest.raises(InvalidConfig, match="server 'x'"):
        load_servers({"x": {"command": "x", "sandbox": sandbox}})


def test_an_address_has_no_sandbox() -> None:
    with pytest.raises(InvalidConfig, match="only a program"):
        load_servers({"x": {"url": "https://example.com/mcp", "sandbox": True}})


@pytest.mark.parametrize("sandbox", [None, False])
def test_no_sandbox_is_none(sandbox: object) -> None:
    assert read_sandbox(sandbox) is None


def test_on_a_kernel_that_cannot_confine_nothing_is_started(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    command = confined(Sandbox(), ["/usr/bin/touch", str(mark)], workspace=tmp_path, hidden=(), environ={})
    launcher = [sys.executable, str(SERVERS / "old_kernel.py"), *command]
    done = subprocess.run(launcher, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == confine_server_main.REFUSED
    assert "cannot confine" in done.stderr
    assert "'sandbox': false" in done.stderr
    assert not mark.exists()


def test_everything_but_what_is_hidden_is_kept(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
    kept = set(confine_server_main.all_but([str(tmp_path / "a" / "b"), str(tmp_path / "nothing-yet")]))
    assert {str(tmp_path / "a" / "d"), str(tmp_path / "e")} <= kept
    assert not {"/", str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")} & kept


async def test_real_servers_work_in_a_sandbox(opened: Opener, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(workspace)], check=True)
    document = {
        "filesystem": {"command": filesystem_server(), "args": [str(workspace)], "sandbox": True},
        "git": {"command": python_server("mcp-server-git"), "sandbox": {"network": False}},
    }
    files, git = (opened(spec) for spec in load_servers({"mcpServers": document}))
    await files.call("write_file", path=str(workspace / "a.txt"), content="hi")
    await git.call("git_add", repo_path=str(workspace), files=["a.txt"])
    assert "new file:   a.txt" in str(await git.call("git_status", repo_path=str(workspace)))
