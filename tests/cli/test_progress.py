"""Progress: shown after half a second at a terminal, cleared before other output, and shown nowhere else."""

import contextlib
import os
import re
import sys
import threading
from pathlib import Path

from tests.cli.commands import holdfast
from tests.cli.terminals import at_terminal, prepared, runs, terminal
from tests.cli.test_task import script

from holdfast.cli.commands import run as run_command
from holdfast.cli.terminal.progress import ProgressIndicator

SLOW = runs("total = 0\nfor each in range(12_000_000):\n    total += each\ntotal")
"""A second or more of work in the sandbox."""
DRAWN = re.compile(r"\r\x1b\[K[|/\\-] \d+s ")


def test_a_task_shows_its_activity_and_duration(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, SLOW, "Done."), "count", home=tmp_path) as user:
        assert user.wait_for("running code")
        assert DRAWN.search(user.seen)
        assert user.wait_for("Done.")
        assert user.end() == 0
    after = user.seen.rsplit("\r\x1b[K", 1)[1]
    assert "Done." in after, "cleared before the answer"
    assert "running code" not in after


def test_no_progress_is_shown_without_a_terminal(tmp_path: Path) -> None:
    done = holdfast("-m", script(tmp_path, SLOW, "Done."), "count", home=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert "running code" not in done.stderr
    assert "\r" not in done.stderr


def test_plain_mode_shows_progress_in_lines(tmp_path: Path) -> None:
    with terminal("--plain", *prepared(tmp_path, SLOW, "Done."), "count", home=tmp_path) as user:
        assert user.wait_for("  busy    running code, ")
        assert user.wait_for("Done.")
        assert user.end() == 0
    assert "\x1b" not in user.seen
    assert "\r" not in user.seen.replace("\r\n", "")


def test_a_long_command_shows_progress_too(tmp_path: Path) -> None:
    words = "import time, holdfast.cli.commands.verify as verify\n"
    words += "async def run(arguments): time.sleep(1.2); return 0\n"
    words += "verify.run = run\nfrom holdfast.cli import main\nmain(['verify'])"
    with at_terminal([sys.executable, "-c", words], home=tmp_path) as user:
        assert user.wait_for("verifying the journals")
        assert user.end() == 0
    assert user.seen.endswith("\r\x1b[K")


def test_no_progress_is_drawn_over_a_question_or_the_output_of_a_program(tmp_path: Path) -> None:
    words = "import time, holdfast.cli.commands.verify as verify\n"
    words += (
        "from holdfast.cli.prompts import reading_lines\nfrom holdfast.cli.terminal.console import Console\n"
    )
    words += "async def run(arguments):\n"
    words += (
        "    with reading_lines(Console()): print('Sure?', end='', flush=True); time.sleep(1.2); return 0\n"
    )
    words += "verify.run = run\nfrom holdfast.cli import main\nmain(['verify'])"
    with at_terminal([sys.executable, "-c", words], home=tmp_path) as user:
        assert user.end() == 0
    assert user.seen == "Sure?"
    assert not hasattr(run_command, "PROGRESS")


def test_a_quick_command_shows_no_progress(tmp_path: Path) -> None:
    with terminal("sessions", home=tmp_path) as user:
        assert user.end() == 0
    assert user.seen == "no sessions yet; start one with: holdfast\r\n"


def test_the_progress_thread_ends_with_its_block() -> None:
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
