"""`holdfast proxy`, `hook`, `install` and `mcp` as people and other programs run them: as processes."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

import mcp_types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.mcp.bench import SERVERS

from holdfast.cli.main import main
from holdfast.core.errors import InvalidConfig
from holdfast.mcp import load_servers, plan

POLICY = """\
policy: lab
rules:
  - name: ask
    escalate: friendly.echo
    because: it echoes
  - name: rest
    allow: "*"
tools:
  friendly.echo: {text: none}
"""


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


class Place:
    """A home of Holdfast and a folder to work in."""

    def __init__(self, root: Path) -> None:
        self.home, self.folder = root / "home", root / "work"
        self.home.mkdir(mode=0o700)
        self.folder.mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOLDFAST_HOME": str(self.home), "HOME": str(root)}

    def configure(self, **servers: list[str]) -> None:
        """Write mcp-servers.json and tool annotations for the friendly server."""
        entries = {name: {"command": command[0], "args": command[1:]} for name, command in servers.items()}
        (self.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": entries}))
        roles = {"toolName": "echo", "args": {"text": ["none"]}}
        count = {"toolName": "wait_forever", "args": {"marker": ["none"]}}
        annotations = {"servers": {"friendly": {"tools": [roles, count]}}}
        (self.home / "tool-annotations.json").write_text(json.dumps(annotations))
        (self.home / "lab.yaml").write_text(POLICY)

    def run(self, *words: str, stdin: str = "") -> Done:
        """A command, run to its end in this process."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name, value in self.environment.items():
                patch.setenv(name, value)
            patch.chdir(self.folder)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            code = main(list(words))
        return Done(code, out.getvalue(), err.getvalue())

    def spawn(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """A command, run to its end in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            check=False,
            timeout=50,
        )

    @asynccontextmanager
    async def proxied(self, *words: str, era: str = "auto", **callbacks: Any) -> AsyncIterator[Client]:
        """The official client over stdio, with `holdfast proxy` at the other end."""
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "holdfast", "proxy", "-p", str(self.home / "lab.yaml"), *words],
            env=self.environment,
            cwd=self.folder,
        )
        info = mcp_types.Implementation(name="desk", version="1")
        async with Client(stdio_client(server), mode=era, client_info=info, **callbacks) as client:
            yield client


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


FRIENDLY = [sys.executable, str(SERVERS / "friendly.py")]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_the_proxy_serves_a_client_that_starts_it(place: Place, era: str) -> None:
    place.configure(friendly=FRIENDLY)
    marker = place.home / "mcp-clients.json"
    marker.write_text('{"clients": ["desk"]}')
    shown: list[str] = []

    async def yes(context: object, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        shown.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={"approve": True})

    async with place.proxied(era=era, elicitation_callback=yes) as client:
        assert "friendly__echo" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("friendly__echo", {"text": "hello"})
        without_roles = await client.call_tool("friendly__add", {"a": 1, "b": 2})
    assert result.content[0].text == "hello"  # type: ignore[union-attr]
    assert without_roles.is_error
    assert "holdfast mcp annotate friendly" in without_roles.content[0].text  # type: ignore[union-attr]
    assert "it echoes" in shown[0]
    audit = json.loads((await asyncio.to_thread(place.run, "audit", "--json")).stdout)
    assert [entry["operation"] for entry in audit] == ["friendly.echo", "friendly.add"]


@pytest.mark.parametrize("decision", ["approved", "denied"])
async def test_a_file_in_the_escalation_folder_decides(place: Place, tmp_path: Path, decision: str) -> None:
    place.configure(friendly=FRIENDLY)
    folder = tmp_path / "escalations"
    folder.mkdir()
    place.environment["ESCALATION_DIR"] = str(folder)
    async with place.proxied() as client:
        appearing = asyncio.create_task(_appearing(folder, "request-*.json"))
        calling = asyncio.create_task(client.call_tool("friendly__echo", {"text": "hello"}))
        request = await appearing
        asked = json.loads(request.read_text())
        assert (asked["serverName"], asked["toolName"]) == ("friendly", "echo")
        draft = folder / "answer"
        draft.write_text(json.dumps({"decision": decision}))
        draft.rename(folder / f"response-{asked['escalationId']}.json")
        result = await calling
    assert result.is_error == (decision == "denied")
    assert (result.content[0].text == "hello") == (decision == "approved")  # type: ignore[union-attr]
    assert list(folder.iterdir()) == []


def test_the_proxy_serves_without_the_server_that_failed_and_says_so(place: Place) -> None:
    place.configure(friendly=FRIENDLY, broken=["/bin/false"])
    proxy = Raw(place)
    proxy.say("tools/list", id=2)
    while "result" not in (message := proxy.hear()):
        pass
    assert "friendly__echo" in [tool["name"] for tool in message["result"]["tools"]]
    _, said = proxy.hang_up()
    assert "friendly: 9 tools" in said
    assert "server 'broken' ended with code 1" in said


class Raw:
    """`holdfast proxy` as a process, spoken to without any library."""

    def __init__(self, place: Place) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "proxy", "-p", str(place.home / "lab.yaml")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place.folder,
            env=place.environment,
        )
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        self.say("initialize", hello, id=1)
        assert "result" in self.hear()
        self.say("notifications/initialized")

    def say(self, method: str, params: dict[str, Any] | None = None, **fields: Any) -> None:
        """One message to it."""
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}} | fields
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        """The next message from it."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def hang_up(self) -> tuple[int, str]:
        """Close its input; its exit code, and what it said to the person."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None
        _, errors = self.process.communicate(timeout=10)
        return self.process.returncode, errors.decode()


def test_the_end_of_its_input_ends_the_proxy_and_its_servers_at_once(place: Place) -> None:
    place.configure(friendly=[sys.executable, str(SERVERS / "clinging.py"), "plain", str(place.folder)])
    proxy = Raw(place)
    proxy.say("tools/list", id=2)
    while not (place.folder / "plain.pid").exists():
        proxy.hear()
    pid = int((place.folder / "plain.pid").read_text())
    os.kill(pid, 0)
    code, _ = proxy.hang_up()
    assert code == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def test_the_end_of_its_input_ends_a_call_under_way_and_its_server(place: Place) -> None:
    place.configure(friendly=FRIENDLY)
    proxy = Raw(place)
    marker = place.folder / "marker"
    proxy.say("tools/call", {"name": "friendly__wait_forever", "arguments": {"marker": str(marker)}}, id=2)
    begun = place.folder / "marker.begun"
    while not begun.exists():
        assert proxy.process.poll() is None
    code, _ = proxy.hang_up()
    assert code == 0
    assert marker.exists()
    (call,) = json.loads(place.run("audit", "--json").stdout)
    assert call["result"] == "cancelled"


def test_without_a_client_the_proxy_says_so(place: Place) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "proxy"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=place.folder,
        env=place.environment,
        check=False,
        timeout=50,
    )
    assert done.returncode == 2
    assert "an MCP client is expected" in done.stderr


def test_a_line_without_end_is_not_kept(place: Place) -> None:
    place.configure()
    proxy = Raw(place)
    assert proxy.process.stdin is not None
    with suppress(BrokenPipeError):
        for _ in range(18):
            proxy.process.stdin.write(b"x" * (1 << 20))
    with suppress(BrokenPipeError):
        proxy.process.stdin.close()
    proxy.process.stdin = None
    _, errors = proxy.process.communicate(timeout=10)
    assert "more than 16 MiB" in errors.decode()


async def test_claude_codes_permission_prompt_is_answered(place: Place) -> None:
    place.configure()
    (place.home / "lab.yaml").write_text(
        'policy: lab\nrules:\n  - name: reads\n    allow: "*"\n    roles: [read-path]\n    inside: true\n'
    )
    async with place.proxied("--permission-prompt") as client:
        inside = {
            "tool_name": "Read",
            "input": {"file_path": str(place.folder / "a.txt")},
            "tool_use_id": "t1",
        }
        yes = await client.call_tool("permission_prompt", inside)
        no = await client.call_tool(
            "permission_prompt", {"tool_name": "Bash", "input": {"command": "rm -rf /"}}
        )
    assert json.loads(yes.content[0].text) == {"behavior": "allow", "updatedInput": inside["input"]}  # type: ignore[union-attr]
    assert json.loads(no.content[0].text)["behavior"] == "deny"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("tool", "given", "decision"),
    [
        ("Read", {"file_path": "{folder}/a.txt"}, "allow"),
        ("Grep", {"pattern": "x"}, "allow"),
        ("Bash", {"command": "ls"}, "ask"),
        ("Write", {"file_path": "/etc/passwd", "content": "x"}, "deny"),
        ("Read", {"file_path": "{home}/holdfast.db"}, "deny"),
        ("BrandNew", {"x": 1}, "deny"),
    ],
)
def test_the_hook_judges_built_in_tools(
    place: Place, tool: str, given: dict[str, object], decision: str
) -> None:
    filled = json.loads(
        json.dumps(given).replace("{folder}", str(place.folder)).replace("{home}", str(place.home))
    )
    asked = {"session_id": "c0ffee", "cwd": str(place.folder), "tool_name": tool, "tool_input": filled}
    done = place.run("hook", "claude", stdin=json.dumps(asked))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == decision
    audit = json.loads(place.run("audit", "claude-c0ffee", "--json").stdout)
    assert [entry["operation"] for entry in audit] == [f"claude.{tool}"]


@pytest.mark.parametrize(
    "stdin",
    [
        "",
        "{",
        "[]",
        '{"tool_name": "Bash"}',
        '{"session_id": "../x", "cwd": "/", "tool_name": "Bash", "tool_input": {}}',
    ],
)
def test_a_hook_that_cannot_judge_blocks(place: Place, stdin: str) -> None:
    done = place.run("hook", "claude", stdin=stdin)
    assert done.returncode == 2
    assert "it is a no" in done.stderr
    assert done.stdout == ""


async def test_hooks_asked_at_the_same_time_all_answer(place: Place) -> None:
    asked = json.dumps(
        {
            "session_id": "many",
            "cwd": str(place.folder),
            "tool_name": "Read",
            "tool_input": {"file_path": "a"},
        }
    )
    answers = await asyncio.gather(
        *(asyncio.to_thread(place.spawn, "hook", "claude", stdin=asked) for _ in range(3))
    )
    assert [answer.returncode for answer in answers] == [0] * 3, [answer.stderr for answer in answers]
    audit = await asyncio.to_thread(place.run, "audit", "claude-many", "--json")
    assert len(json.loads(audit.stdout)) == 3


def test_a_server_is_added_looked_at_annotated_and_removed(place: Place) -> None:
    added = place.run("mcp", "add", "quiet", "--", sys.executable, str(SERVERS / "hostile.py"), "quiet")
    assert added.returncode == 0, added.stderr
    assert "quiet.save  Saves." in added.stdout
    assert "holdfast mcp annotate quiet" in place.run("mcp", "doctor").stdout
    assert place.run("mcp", "annotate", "quiet", "--model", "none").returncode == 3  # nobody there to confirm
    proposed = place.run("mcp", "annotate", "quiet", "--model", "none", "--yes")
    assert proposed.stdout == "quiet.save\n  path: write-path\n  thing: none   (unsure: look)\n"
    assert place.run("mcp", "doctor").stdout == "ok  quiet\n"
    listed = json.loads(place.run("mcp", "list", "--json").stdout)
    assert listed[0]["server"]["name"] == "quiet"
    assert place.run("mcp", "remove", "quiet").returncode == 0
    assert place.run("mcp", "remove", "quiet").returncode == 2


def test_a_server_is_added_confined(place: Place) -> None:
    script = str(SERVERS / "probing.py")
    assert place.run("mcp", "add", "probing", "--sandbox", "--", sys.executable, script).returncode == 0
    entry = json.loads((place.home / "mcp-servers.json").read_text())["mcpServers"]["probing"]
    assert entry["sandbox"] is True
    assert "confined" in place.run("mcp", "list").stdout


@pytest.mark.parametrize("is_before", [True, False])
def test_options_of_add_stand_before_the_name_or_after_it(place: Place, is_before: bool) -> None:
    place.environment["FRIEND_TOKEN"] = "a-token-of-mine"
    options = ["--variable", "FRIEND_TOKEN"]
    words = [*options, "friendly"] if is_before else ["friendly", *options]
    assert place.run("mcp", "add", *words, "--", *FRIENDLY).returncode == 0
    entry = json.loads((place.home / "mcp-servers.json").read_text())["mcpServers"]["friendly"]
    assert entry["env"] == {"FRIEND_TOKEN": "${FRIEND_TOKEN}"}
    assert [entry["command"], *entry["args"]] == FRIENDLY


def test_a_server_is_added_by_its_address(place: Place) -> None:
    done = place.run("mcp", "add", "docs", "--url", "http://127.0.0.1:9/mcp")
    assert done.returncode == 1  # it is asked for, and nobody is there
    assert "'docs'" in done.stderr


def test_what_is_left_of_a_file_that_was_made_for_us_is_one_that_claude_can_read(tmp_path: Path) -> None:
    options: Any = {"command": ("holdfast",), "folder": tmp_path, "home": tmp_path, "is_for_user": False}
    for is_removal in (False, True):
        for change in plan("claude", **options, is_removal=is_removal).changes:
            Path(change.path).parent.mkdir(exist_ok=True)
            Path(change.path).write_text(change.after)
    assert json.loads((tmp_path / ".mcp.json").read_text()) == {"mcpServers": {}}
    assert json.loads((tmp_path / ".claude" / "settings.json").read_text()) == {}
    assert plan("claude", **options, is_removal=True).changes == ()


def test_a_changed_tool_is_shown_and_accepted(place: Place) -> None:
    switch = place.folder / "switch"
    assert (
        place.run(
            "mcp", "add", "rug", "--", sys.executable, str(SERVERS / "hostile.py"), "rug", str(switch)
        ).returncode
        == 0
    )
    assert place.run("mcp", "diff", "rug").stdout == ""
    misspelt = place.run("mcp", "trust", "rug", "wrok")
    assert (misspelt.returncode, "rug has no tool 'wrok'" in misspelt.stderr) == (2, True)
    switch.touch()
    difference = place.run("mcp", "diff", "rug").stdout
    assert '-  "description": "Adds numbers."' in difference
    assert '+  "description": "Deletes everything."' in difference
    assert place.run("mcp", "trust", "rug").returncode == 3
    assert "accepted: work, extra" in place.run("mcp", "trust", "rug", "--yes").stderr
    assert place.run("mcp", "diff", "rug").stdout == ""


def test_the_example_in_the_guide_is_understood() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "mcp.md").read_text()
    example = guide.partition("```json\n")[2].partition("```")[0]
    assert [spec.name for spec in load_servers(json.loads(example))] == ["git", "github", "docs"]


def test_install_shows_before_it_writes(place: Place) -> None:
    (place.folder / ".mcp.json").write_text('{"mcpServers": {"old": {"command": "x"}}}')
    dry = place.run("install", "claude", "--dry-run")
    assert '+    "holdfast": {' in dry.stdout
    assert "past the gate: old" in dry.stderr
    assert not (place.folder / ".claude").exists()
    assert place.run("install", "claude").returncode == 0
    servers = json.loads((place.folder / ".mcp.json").read_text())["mcpServers"]
    assert list(servers) == ["old", "holdfast"]
    hooks = json.loads((place.folder / ".claude" / "settings.json").read_text())["hooks"]["PreToolUse"]
    assert hooks[0]["hooks"][0]["command"].endswith("hook claude || exit 2")
    assert "it is installed" in place.run("install", "claude").stderr


@pytest.mark.parametrize(
    ("client", "file"),
    [("codex", ".codex/config.toml"), ("cursor", ".cursor/mcp.json"), ("vscode", ".vscode/mcp.json")],
)
def test_every_client_gets_its_own_file(tmp_path: Path, client: str, file: str) -> None:
    planned = plan(client, command=("holdfast",), folder=tmp_path, home=tmp_path, is_for_user=False)
    (change,) = planned.changes
    assert change.path == str(tmp_path / file)
    assert "holdfast" in change.after
    assert "proxy" in change.after


def test_what_stands_in_a_file_stays(tmp_path: Path) -> None:
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('model = "x"  # mine\n[mcp_servers.other]\ncommand = "y"')
    (change,) = plan("codex", command=("holdfast",), folder=tmp_path, home=tmp_path, is_for_user=True).changes
    assert change.after.startswith(change.before + "\n\n[mcp_servers.holdfast]\n")
    path.write_text(change.after)
    assert (
        plan("codex", command=("holdfast",), folder=tmp_path, home=tmp_path, is_for_user=True).changes == ()
    )


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("claude", ".mcp.json", '{"mcpServers": {"old": {"command": "x", "args": [], "env": {}}}}'),
        ("codex", ".codex/config.toml", 'model = "x"  # mine\n\n[mcp_servers.other]\ncommand = "y"\n'),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"old": {"command": "x"}}}'),
        ("vscode", ".vscode/mcp.json", '{"servers": {"old": {"command": "x"}}, "inputs": []}'),
    ],
)
def test_what_was_installed_is_taken_out_and_the_rest_stays(
    tmp_path: Path, client: str, file: str, text: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    options: Any = {"command": ("holdfast",), "folder": tmp_path, "home": tmp_path, "is_for_user": False}
    for is_removal in (False, True):
        planned = plan(client, **options, is_removal=is_removal)
        for change in planned.changes:
            Path(change.path).parent.mkdir(exist_ok=True)
            Path(change.path).write_text(change.after)
    assert "holdfast" not in path.read_text()
    if file.endswith(".toml"):
        assert path.read_text() == text
    else:
        kept = json.loads(path.read_text())
        assert kept == json.loads(text)
    assert plan(client, **options, is_removal=True).changes == ()


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', "// comment\n{}"])
def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    with pytest.raises(InvalidConfig):
        plan("claude", command=("holdfast",), folder=tmp_path, home=tmp_path, is_for_user=False)


async def _appearing(folder: Path, pattern: str) -> Path:
    while not (found := list(folder.glob(pattern))):  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    return found[0]
