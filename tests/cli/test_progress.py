"""Progress: shown after half a second at a terminal, wiped away before anything else, and nowhere else."""

import contextlib
import os
import re
import sys
import threading
from pathlib import Path

from tests.cli.commands import holdfast
from tests.cli.terminals import at_terminal, prepared, runs, terminal
from tests.cli.test_task import script

from holdfast.cli.terminal.progress import ProgressIndicator

SLOW = runs("total = 0\nfor each in range(12_000_000):\n    total += each\ntotal")
"""A second or more of work in the sandbox."""
DRAWN = re.compile(r"\r\x1b\[K[|/\\-] \d+s ")


def test_a_task_shows_what_runs_and_for_how_long(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, SLOW, "Done."), "count", home=tmp_path) as typist:
        assert typist.wait_for("running code")
        assert DRAWN.search(typist.seen)
        assert typist.wait_for("Done.")
        assert typist.end() == 0
    after = typist.seen.rsplit("\r\x1b[K", 1)[1]
    assert "Done." in after, "wiped away before the answer"
    assert "running code" not in after


def test_nothing_is_shown_where_stderr_is_no_terminal(tmp_path: Path) -> None:
    done = holdfast("-m", script(tmp_path, SLOW, "Done."), "count", home=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert "running code" not in done.stderr
    assert "\r" not in done.stderr


def test_plain_mode_tells_it_in_lines(tmp_path: Path) -> None:
    with terminal("--plain", *prepared(tmp_path, SLOW, "Done."), "count", home=tmp_path) as typist:
        assert typist.wait_for("  busy    running code, ")
        assert typist.wait_for("Done.")
        assert typist.end() == 0
    assert "\x1b" not in typist.seen
    assert "\r" not in typist.seen.replace("\r\n", "")


def test_a_long_command_shows_progress_too(tmp_path: Path) -> None:
    words = "import time, holdfast.cli.commands.verify as verify\n"
    words += "async def run(arguments): time.sleep(1.2); return 0\n"
    words += "verify.run = run\nfrom holdfast.cli import main\nmain(['verify'])"
    with at_terminal([sys.executable, "-c", words], home=tmp_path) as typist:
        assert typist.wait_for("verifying the journals")
        assert typist.end() == 0
    assert typist.seen.endswith("\r\x1b[K")


def test_what_is_quick_shows_nothing(tmp_path: Path) -> None:
    with terminal("sessions", home=tmp_path) as typist:
        assert typist.end() == 0
    assert typist.seen == "no sessions yet; start one with: holdfast\r\n"


def test_the_thread_ends_with_the_block() -> None:
    reading, writing = os.openpty()
    try:
        with open(writing, "w", closefd=False) as stream:
            before = threading.active_count()
            with contextlib.suppress(ValueError), ProgressIndicator(lambda: "works", stream=stream):
                during = threading.active_count()
                raise ValueError("on purpose")
            assert (during, threading.active_count()) == (before + 1, before)
    finally:
        os.close(reading)
        os.close(writing)
