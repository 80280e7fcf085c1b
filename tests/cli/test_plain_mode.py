"""Plain mode: linear text for screen readers, simple terminals and pipes."""

import re
import signal
import time
from pathlib import Path

import pytest
from tests.cli.terminals import DELETE, SPIN, let_code_run, prepared, terminal

from holdfast.cli.terminal.progress import is_linear

TRANSCRIPT = """\
~/work · policy asking.yaml · scripted:HOME/script.json · python sandbox · no programs
session ID; /help lists commands, Ctrl-D quits
remove it
  ask     world.delete path=/workspace/a.txt

  The agent wants to delete WORK/a.txt
    world.delete
      path: /workspace/a.txt
  reason:        deleting is yours to decide (rule ask-delete, HOME/asking.yaml:3)
  values from:   the agent itself, in turn 1; they do not appear in earlier input
  can be undone: yes: a rewind restores the files
  [y] approve once  [a] more  [n] deny  [r] deny, say why  [e] edit  [?] help
  type a key and Enter, or /approve or /deny REASON; Enter alone does nothing
r
reason> it is precious
  answer  denied (once), by terminal
  deny    world.delete path=/workspace/a.txt
          rule ask-delete: the person denied it: it is precious
  ran 2 lines of code (python): error (/unfold shows it)
  error   PermissionError: WHY
Then **not**.
  ready
resume with: holdfast -r ID
"""


@pytest.mark.parametrize(
    ("variables", "is_wanted"),
    [
        ({"TERM": "dumb"}, True),
        ({"NO_COLOR": "1", "TERM": "xterm"}, False),
        ({"NO_COLOR": "1", "TERM": "dumb"}, True),
        ({}, True),
        ({"TERM": "xterm"}, False),
        ({"TERM": "xterm", "HOLDFAST_PLAIN": "1"}, True),
    ],
)
def test_dumb_terminals_ask_for_linear_text_and_no_color_does_not(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_wanted: bool
) -> None:
    for name in ("TERM", "NO_COLOR", "HOLDFAST_PLAIN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_linear() is is_wanted


@pytest.mark.parametrize(
    ("words", "environment"), [(("--plain",), {}), ((), {"TERM": "dumb"})], ids=["--plain", "TERM=dumb"]
)
def test_a_plain_session_is_linear_text(
    tmp_path: Path, words: tuple[str, ...], environment: dict[str, str]
) -> None:
    with terminal(*words, *prepared(tmp_path, DELETE, "Then **not**."), home=tmp_path, **environment) as user:
        assert user.wait_for("/help")
        user.type("remove it\n")
        assert user.wait_for("type a key and Enter")
        for _ in range(40):
            time.sleep(0.7)
            user.type("r\n")
            # Another line would be the reason, so this waits longer than the program takes to accept one.
            if user.wait_for("reason> ", seconds=10):
                break
        user.type("it is precious\n")
        assert user.wait_for("ready")
        user.type("\x04")
        assert user.end() == 0
    seen = user.seen.replace("\r\n", "\n")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", seen), (
        "no control characters: nothing is redrawn or coloured"
    )
    # A long path is shown without its middle.
    seen = re.sub(r"/\S*\.\.\.\S*/work/a\.txt", "WORK/a.txt", seen)
    seen = re.sub(r"/\S*\.\.\.\S*/asking\.yaml", "HOME/asking.yaml", seen)
    seen = seen.replace(str(tmp_path / "work"), "WORK")
    seen = seen.replace(str(tmp_path), "HOME")
    seen = re.sub(r"\d{4}-\d\d-\d\d-[\w-]+", "ID", seen)
    seen = re.sub(r"PermissionError: .*", "PermissionError: WHY", seen)
    seen = re.sub(r"(r\n)+(?=reason)", "r\n", seen)
    seen = re.sub(r"  busy    .*\n", "", seen)
    assert seen == TRANSCRIPT


def test_an_interrupt_stops_the_turn_but_not_the_session(tmp_path: Path) -> None:
    words = prepared(tmp_path, SPIN, "Never said.")
    let_code_run(tmp_path)
    with terminal("--plain", *words, home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("spin\n")
        assert user.wait_for("  busy    ")
        user.type("and then this\n")
        assert user.wait_for("queued (1)")
        user.process.send_signal(signal.SIGINT)
        assert user.wait_for("stopped; completed actions are not undone")
        user.process.send_signal(signal.SIGINT)
        assert user.wait_for("no turn is running; Ctrl-D quits")
        user.type("/logs\n")
        assert user.wait_for("you     turn 1: spin"), user.seen
        assert user.wait_for("turn    1 stopped by you")
        user.type("/quit\n")
        assert user.end() == 0
