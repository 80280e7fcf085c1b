"""Plain mode: linear text for screen readers, simple terminals and pipes, shown by whole transcripts."""

import re
import signal
import time
from pathlib import Path

import pytest
from tests.cli.terminals import DELETE, prepared, runs, terminal

TRANSCRIPT = """\
session ID; /help lists commands, Ctrl-D leaves
remove it
  ask     world.delete path=/workspace/a.txt
          rule ask-delete: deleting is yours to decide

  The agent wants to delete WORK/a.txt
    world.delete
      path: /workspace/a.txt
  why it asks:   deleting is yours to decide (rule ask-delete, HOME/asking.yaml:3)
  values from:   the agent itself, in turn 1: nothing of it was said or read before
  can be undone: yes: /rewind brings the files back
  spent so far:  N tokens, $0.0000, 0 calls
  a standing yes (2, 3, 4, 5, 0) covers: world.delete on path WORK/a.txt (delete-path)
    1  yes, once
    2  yes, in this turn
    3  yes, for 10 minutes
    4  yes, in this session
    5  yes, always, in every session
    0  yes, so many times
    6  no
    7  no, and tell it why
    8  edit the arguments
  type a digit and Enter, or type /approve or /deny REASON; Enter alone does nothing
7
tell it why> it is precious
  answer  no (once), by terminal
  deny    world.delete path=/workspace/a.txt
          rule ask-delete: the person said no: it is precious
  error   PermissionError: WHY
Then **not**.
  ready
go on with: holdfast -r ID
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
            if typist.wait_for("tell it why> ", seconds=2):
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
    seen = re.sub(r"  works   .*\n", "", seen)
    assert seen == TRANSCRIPT


def test_an_interrupt_stops_the_turn_and_not_the_session(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("while True: pass"), "Never said.")
    with terminal("--plain", *words, home=tmp_path) as typist:
        assert typist.wait_for("/help")
        typist.type("spin\n")
        assert typist.wait_for("  works   ")
        typist.type("and then this\n")
        assert typist.wait_for("queued; 1 waits")
        typist.process.send_signal(signal.SIGINT)
        assert typist.wait_for("stopped; what was done stays done")
        typist.process.send_signal(signal.SIGINT)
        assert typist.wait_for("nothing runs; Ctrl-D leaves")
        typist.type("/logs\n")
        assert typist.wait_for("you     turn 1: spin"), typist.seen
        assert typist.wait_for("turn    1 stopped before it was done")
        typist.type("/quit\n")
        assert typist.end() == 0
