"""Commands that wait for a server show progress at a terminal, and none in a pipe."""

import json
from pathlib import Path

import pytest
from tests.cli.commands import holdfast
from tests.cli.slow_model import SlowModel
from tests.cli.terminals import terminal
from tests.cli.test_progress import DRAWN
from tests.support.fork_server import forked_python

from holdfast.models import Reply, say, use

KEY = {"HOLDFAST_SERVER_KEY": "stub-key"}
LONG, SHORT = 60.0, 1.2
"""Until the test lets it answer; and longer than the delay of the progress line."""
LATE_SERVER = """\
import os, sys, time
end = time.monotonic() + float(sys.argv[1])
while not os.path.exists(sys.argv[2]) and time.monotonic() < end:
    time.sleep(0.02)
from mcp.server.mcpserver import MCPServer
server = MCPServer("late")
server.tool(name="echo", description="Say it again.")(lambda text: text)
server.run("stdio")
"""


def words_of(command: str, home: Path, model: SlowModel) -> list[str]:
    """The command with its arguments."""
    if command == "model check":
        return ["model", "check", model.spec]
    roster, project = home / "teams.yaml", home.with_name(f"{home.name}-project")
    project.mkdir()
    roster.write_text(f"teams:\n  desk: {{project: '{project}', model: '{model.spec}'}}\n")
    return ["teams", "--file", str(roster), "ask", "desk", "hello"]


CASES = [
    ("model check", use("add", {"a": 19, "b": 23}), "asking ", "uses tools  yes"),
    ("teams ask", say("Here I am."), "desk is answering", "Here I am."),
]


@pytest.mark.parametrize(("command", "reply", "doing", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_slow_model_shows_progress_at_a_terminal(
    tmp_path: Path, command: str, reply: Reply, doing: str, expected: str
) -> None:
    with (
        SlowModel(reply, LONG).serving() as model,
        terminal(*words_of(command, tmp_path, model), home=tmp_path, **KEY) as user,
    ):
        assert user.wait_for(doing), user.seen
        assert DRAWN.search(user.seen)
        model.may_answer.set()
        assert user.wait_for(expected), user.seen
        assert user.end() == 0
    after = user.seen.rsplit("\r\x1b[K", 1)[1]
    assert doing not in after, "cleared before the answer"


@pytest.mark.parametrize(("command", "reply", "doing", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_slow_model_shows_no_progress_in_a_pipe(
    tmp_path: Path, command: str, reply: Reply, doing: str, expected: str
) -> None:
    with SlowModel(reply, SHORT).serving() as model:
        done = holdfast(*words_of(command, tmp_path, model), home=tmp_path, **KEY)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("verb", ["add", "doctor"])
def test_a_slow_server_shows_progress_at_a_terminal(tmp_path: Path, verb: str) -> None:
    go = tmp_path / "go"
    if verb != "add":
        go.touch()
        assert holdfast("mcp", *adding(tmp_path, LONG), home=tmp_path).returncode == 0
        go.unlink()
    words = adding(tmp_path, LONG) if verb == "add" else [verb, "late"]
    with terminal("mcp", *words, home=tmp_path) as user:
        assert user.wait_for("starting late"), user.seen
        go.touch()
        assert user.end() == (1 if verb == "doctor" else 0), user.seen
    assert DRAWN.search(user.seen)
    assert "starting late" not in user.seen.rsplit("\r\x1b[K", 1)[1]


def test_opening_a_session_with_a_slow_server_shows_progress(tmp_path: Path) -> None:
    _, _, _, command, *arguments = adding(tmp_path, LONG)
    late = {"command": command, "args": arguments}
    (tmp_path / "holdfast").mkdir()
    (tmp_path / "holdfast" / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"late": late}}))
    (tmp_path / "hello.json").write_text('["Here I am."]')
    with terminal("-m", "scripted:hello.json", "hello", home=tmp_path) as user:
        assert user.wait_for("opening the session"), user.seen
        (tmp_path / "go").touch()
        assert user.wait_for("Here I am."), user.seen
        assert user.end() == 0


def test_a_slow_server_shows_no_progress_in_a_pipe(tmp_path: Path) -> None:
    done = holdfast("mcp", *adding(tmp_path, SHORT), home=tmp_path)
    assert done.returncode == 0, done.stderr
    added, *hints = done.stderr.splitlines()
    assert added == f"added late to {tmp_path}/holdfast/mcp-servers.json"
    assert [line.split()[0] for line in hints] == ["every", "hint:"], "what comes after is no progress"


def adding(home: Path, limit_seconds: float) -> list[str]:
    """The arguments that add a server which starts after a time limit, or when the file `go` exists."""
    script = home / "late.py"
    script.write_text(LATE_SERVER)
    return ["add", "late", "--", *forked_python(str(script), str(limit_seconds), str(home / "go"))]
