"""Plain mode: linear text for screen readers, simple terminals and pipes, shown by whole transcripts."""

import re
import signal
import time
from pathlib import Path

import pytest
from tests.cli.terminals import DELETE, prepared, runs, terminal

TRANSCRIPT = """\
session ID; /help lists commands, Ctrl-D quits
remove it
  ask     world.delete path=/workspace/a.txt
          rule ask-delete: deleting is yours to decide

  The agent wants to delete WORK/a.txt
    world.delete
      path: /workspace/a.txt
  reason:        deleting is yours to decide (rule ask-delete, HOME/asking.yaml:3)
  values from:   the agent itself, in turn 1; they do not appear in earlier input
  can be undone: yes: /rewind restores the files
  spent so far:  N tokens, $0.0000, 0 calls
  a saved approval (2, 3, 4, 5, 0) would cover: world.delete on path WORK/a.txt (delete-path)
    1  approve once
    2  approve for this turn
    3  approve for 10 minutes
    4  approve for this session
    5  approve always, in every session
    0  approve a number of times
    6  deny
    7  deny with a reason
    8  edit the arguments
  type a digit and Enter, or type /approve or /deny REASON; Enter alone does nothing
7
reason> it is precious
  answer  denied (once), by terminal
  deny    world.delete path=/workspace/a.txt
          rule ask-delete: the person said no: it is precious
  error   PermissionError: WHY
Then **not**.
  ready
resume with: holdfast -r ID
"""


@pytest.mark.parametrize(
    ("words", "environment"),
    [(("--plain",), {}), ((), {"TERM": "dumb"}), ((), {"NO_COLOR": "1"})],
    ids=["--plain", "TERM=dumb", "NO_COLOR"],
)
def test_a_whole_session_is_lines_below_lines(
    tmp_path: Path, words: tuple[str, ...], environment: dict[str, str]
) -> None:
    with terminal(
        *words, *prepared(tmp_path, DELETE, "Then **not**."), home=tmp_path, **environment
    ) as typist:
        assert typist.wait_for("/help")
        typist.type("remove it\n")
        assert typist.wait_for("type a digit and Enter")
        for _ in range(10):
            time.sleep(0.7)
            typist.type("7\n")
            if typist.wait_for("reason> ", seconds=2):
                break
        typist.type("it is precious\n")
        assert typist.wait_for("ready")
        typist.type("\x04")
        assert typist.end() == 0
    seen = typist.seen.replace("\r\n", "\n")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", seen), (
        "no control characters: nothing is redrawn or coloured"
    )
    seen = seen.replace(str(tmp_path / "work"), "WORK")
    seen = seen.replace(str(tmp_path), "HOME")
    seen = re.sub(r"\d{4}-\d\d-\d\d-[\w-]+", "ID", seen)
    seen = re.sub(r"spent so far:  [\d,]+", "spent so far:  N", seen)
    seen = re.sub(r"PermissionError: .*", "PermissionError: WHY", seen)
    seen = re.sub(r"(7\n)+", "7\n", seen)
    seen = re.sub(r"  busy    .*\n", "", seen)
    assert seen == TRANSCRIPT


def test_an_interrupt_stops_the_turn_and_not_the_session(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("while True: pass"), "Never said.")
    with terminal("--plain", *words, home=tmp_path) as typist:
        assert typist.wait_for("/help")
        typist.type("spin\n")
        assert typist.wait_for("  busy    ")
        typist.type("and then this\n")
        assert typist.wait_for("queued (1)")
        typist.process.send_signal(signal.SIGINT)
        assert typist.wait_for("stopped; completed actions are not undone")
        typist.process.send_signal(signal.SIGINT)
        assert typist.wait_for("no turn is running; Ctrl-D quits")
        typist.type("/logs\n")
        assert typist.wait_for("you     turn 1: spin"), typist.seen
        assert typist.wait_for("turn    1 stopped by you")
        typist.type("/quit\n")
        assert typist.end() == 0
