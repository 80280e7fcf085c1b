"""The official filesystem, git, time and fetch servers, behind our toolset."""

import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.mcp.installed import filesystem_server, python_server
from tests.mcp.toolset_harness import OpenToolset

from holdfast.core import Location
from holdfast.core.errors import PathRefused, ToolFailed
from holdfast.mcp import ServerSpec, ServerStarted


class WorkspacePaths:
    """A minimal resolver for the paths of a workspace."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def locate(self, given: str) -> Location:
        inside = given.removeprefix("/workspace/")
        if ".." in inside:
            return Location(given=given, problem="leads outside")
        return Location(given=given, real=str(self._root / inside), inside=inside)


async def test_the_filesystem_server_reads_and_writes_inside_the_workspace_only(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    spec = ServerSpec(name="filesystem", command=filesystem_server(), args=(str(workspace),))
    files = open_toolset(spec, paths=WorkspacePaths(workspace))
    await files.call("write_file", path="/workspace/note.txt", content="buy milk")
    assert (workspace / "note.txt").read_text() == "buy milk"
    assert await files.call("read_text_file", path="note.txt") == {"content": "buy milk"}
    assert all(tool.roles is not None for tool in files.toolset.tools())
    assert isinstance(files.notifications[0], ServerStarted)
    assert files.notifications[0].protocol == "2025-11-25"
    with pytest.raises(PathRefused):
        await files.call("read_multiple_files", paths=["a.txt", "../../etc/passwd"])


async def test_the_git_server_commits(open_toolset: OpenToolset, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    _make_repository(workspace)
    git = open_toolset(ServerSpec(name="git", command=python_server("mcp-server-git")))
    await git.call("git_add", repo_path=str(workspace), files=["a.txt"])
    await git.call("git_commit", repo_path=str(workspace), message="first")
    assert "first" in str(await git.call("git_log", repo_path=str(workspace)))
    assert all(tool.roles is not None for tool in git.toolset.tools())
    assert isinstance(git.notifications[0], ServerStarted)
    assert git.notifications[0].protocol == "2026-07-28"


async def test_the_time_server_tells_the_time(open_toolset: OpenToolset) -> None:
    time = open_toolset(ServerSpec(name="clock", command=python_server("mcp-server-time")))
    converted = await time.call(
        "convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
    )
    assert "21:00" in str(converted)
    assert all(tool.roles is not None for tool in time.toolset.tools())
    with pytest.raises(ToolFailed, match=r"[Tt]imezone"):
        await time.call("get_current_time", timezone="Middle/Earth")


async def test_the_fetch_server_fetches_from_loopback(open_toolset: OpenToolset) -> None:
    with HTTPServer(("127.0.0.1", 0), _Page) as page:
        serving = threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            fetch = open_toolset(
                ServerSpec(
                    name="fetch",
                    command=python_server("mcp-server-fetch"),
                    args=("--ignore-robots-txt", "--allow-private-ips"),
                )
            )
            result = await fetch.call("fetch", url=f"http://127.0.0.1:{page.server_port}/", raw=True)
        finally:
            page.shutdown()
            serving.join()
    (tool,) = fetch.toolset.tools()
    assert tool.roles is not None
    assert tool.roles["url"].default == ("fetch-url",)
    assert "A page" in str(result)


def _make_repository(folder: Path) -> None:
    for command in ("init -q", "config user.email t@example.com", "config user.name t"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    (folder / "a.txt").write_text("a")


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = (
            b"<html><head><title>A page</title></head><body><h1>A page</h1><p>Some words.</p></body></html>"
        )
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass
