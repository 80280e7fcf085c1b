"""Commands that wait for somebody else show it at a terminal, and nothing of it in a pipe."""

import json
import sys
from pathlib import Path

import pytest
from tests.cli.commands import holdfast
from tests.cli.slow_model import SlowModel
from tests.cli.terminals import terminal
from tests.cli.test_progress import DRAWN

from holdfast.models import Reply, say, use

KEY = {"HOLDFAST_SERVER_KEY": "stub-key"}
LONG, SHORT = 60.0, 1.2
"""Until it is told to answer; and longer than progress needs to be shown, where nobody looks."""
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
    """The command, with what it needs."""
    if command == "model check":
        return ["model", "check", model.spec]
    roster = home / "teams.yaml"
    roster.write_text(f"teams:\n  desk: {{project: '{home}', model: '{model.spec}'}}\n")
    return ["teams", "--file", str(roster), "ask", "desk", "hello"]


CASES = [
    ("model check", use("add", {"a": 19, "b": 23}), "asking ", "uses tools  yes"),
    ("teams ask", say("Here I am."), "waiting for desk", "Here I am."),
]


@pytest.mark.parametrize(("command", "reply", "doing", "told"), CASES, ids=[case[0] for case in CASES])
def test_a_model_that_takes_its_time_is_waited_for_in_sight(
    tmp_path: Path, command: str, reply: Reply, doing: str, told: str
) -> None:
    with (
        SlowModel(reply, LONG).serving() as model,
        terminal(*words_of(command, tmp_path, model), home=tmp_path, **KEY) as typist,
    ):
        assert typist.wait_for(doing), typist.seen
        assert DRAWN.search(typist.seen)
        model.may_answer.set()
        assert typist.wait_for(told), typist.seen
        assert typist.end() == 0
    after = typist.seen.rsplit("\r\x1b[K", 1)[1]
    assert doing not in after, "wiped away before the answer"


@pytest.mark.parametrize(("command", "reply", "doing", "told"), CASES, ids=[case[0] for case in CASES])
def test_a_model_that_takes_its_time_is_waited_for_in_silence_where_nobody_looks(
    tmp_path: Path, command: str, reply: Reply, doing: str, told: str
) -> None:
    with SlowModel(reply, SHORT).serving() as model:
        done = holdfast(*words_of(command, tmp_path, model), home=tmp_path, **KEY)
    assert done.returncode == 0, done.stderr
    assert told in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("verb", ["add", "doctor", "diff"])
def test_a_server_that_takes_its_time_is_waited_for_in_sight(tmp_path: Path, verb: str) -> None:
    go = tmp_path / "go"
    if verb != "add":
        go.touch()
        assert holdfast("mcp", *adding(tmp_path, LONG), home=tmp_path).returncode == 0
        go.unlink()
    words = adding(tmp_path, LONG) if verb == "add" else [verb, "late"]
    with terminal("mcp", *words, home=tmp_path) as typist:
        assert typist.wait_for("starting late"), typist.seen
        go.touch()
        assert typist.end() == (1 if verb == "doctor" else 0), typist.seen
    assert DRAWN.search(typist.seen)
    assert "starting late" not in typist.seen.rsplit("\r\x1b[K", 1)[1]


def test_a_session_whose_server_takes_its_time_is_opened_in_sight(tmp_path: Path) -> None:
    _, _, _, command, *arguments = adding(tmp_path, LONG)
    late = {"command": command, "args": arguments}
    (tmp_path / "holdfast").mkdir()
    (tmp_path / "holdfast" / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"late": late}}))
    (tmp_path / "hello.json").write_text('["Here I am."]')
    with terminal("-m", "scripted:hello.json", "hello", home=tmp_path) as typist:
        assert typist.wait_for("opening the session"), typist.seen
        (tmp_path / "go").touch()
        assert typist.wait_for("Here I am."), typist.seen
        assert typist.end() == 0


def test_a_server_that_takes_its_time_is_waited_for_in_silence_where_nobody_looks(tmp_path: Path) -> None:
    done = holdfast("mcp", *adding(tmp_path, SHORT), home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [f"added late to {tmp_path}/holdfast/mcp-servers.json"]


def adding(home: Path, patience_seconds: float) -> list[str]:
    """The words that add a server which waits so long, or until it is told to go."""
    script = home / "late.py"
    script.write_text(LATE_SERVER)
    return ["add", "late", "--", sys.executable, str(script), str(patience_seconds), str(home / "go")]
