"""Runs the examples of documentation pages: every `console` block is typed at a terminal, and its output must match the page.

A line with `$ ` is a shell command, `> ` is typed at the prompt of a chat, `[6]` is a key pressed at a question
and `reason> ` is answered in words; `^D` leaves a question.
Other lines must appear in this order; `...` matches anything, also within a line.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.terminals import TerminalUser, at_terminal
from tests.support.fork_server import forked_python

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"\[(\d)\]")
_ASKED = "reason> "
_LEAVE = "^D"
_ESCAPES = re.compile(r"\x1b\][^\x07]*\x07|\x1b\[[0-?]*[ -/]*[@-~]")
_CHANGING = (
    (re.compile(r"\d{4}(-\d\d){5}-\d{3}-\w{4}"), "SESSION"),
    (re.compile(r"\d+\.\d+ s"), "N s"),
)


@dataclass
class Step:
    """One command, its input and its expected output."""

    command: str
    lines: list[str] = field(default_factory=list)

    @property
    def is_chat(self) -> bool:
        return any(line.startswith("> ") or _KEY.fullmatch(line) or line == _LEAVE for line in self.lines)


def steps(page: str) -> Iterator[Step]:
    """Every command of a page. A here-document is part of its command."""
    for block in _BLOCK.findall(page):
        step: Step | None = None
        ending = ""
        for line in block.splitlines():
            if ending:
                assert step is not None
                step.command += f"\n{line}"
                ending = "" if line == ending else ending
            elif line.startswith("$ "):
                if step is not None:
                    yield step
                step = Step(line[2:])
                found = re.search(r"<<'(\w+)'", line)
                ending = found[1] if found else ""
            elif step is not None and line.strip():
                step.lines.append(line)
        if step is not None:
            yield step


def run_page(page: Path, home: Path, *, is_typed: bool = False) -> None:
    """Run the examples of a page, step by step, and compare the output; with `is_typed`, every command at a terminal."""
    (home / "bin").mkdir()
    program = home / "bin" / "holdfast"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(forked_python("-m", "holdfast"))} "$@"\n')
    program.chmod(0o755)
    for step in steps(page.read_text(encoding="utf-8")):
        seen = _chat(step, home) if step.is_chat else _typed(step, home) if is_typed else _shell(step, home)
        check_seen(step, seen)


def check_seen(step: Step, seen: str) -> None:
    """Check that the printed lines appear in their order."""
    shown = _plain(seen)
    place = 0
    for line in step.lines:
        if line.strip() in ("...", _LEAVE) or line.startswith("> ") or _KEY.fullmatch(line):
            continue
        for part in line.split("..."):
            wanted = _plain(part.strip())
            found = shown.find(wanted, place)
            assert found >= 0, f"$ {step.command}\n{line!r} is not shown, in its place, in\n{seen}"
            place = found + len(wanted)


def _plain(text: str) -> str:
    text = _ESCAPES.sub("", text).replace("\r", "")
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return re.sub(r"[ \n]+", " ", text)


def _environment(home: Path) -> dict[str, str]:
    return {
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TMPDIR": str(home),
    }


def _shell(step: Step, home: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", step.command],
        env=_environment(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    return done.stdout


def _typed(step: Step, home: Path) -> str:
    with at_terminal(["bash", "-c", step.command], home=home, **_environment(home), HOLDFAST_HOME="") as user:
        user.end()
        return user.seen


def _chat(step: Step, home: Path) -> str:
    with at_terminal(["bash", "-c", step.command], home=home, **_environment(home), HOLDFAST_HOME="") as user:
        for line in step.lines:
            if line.startswith("> "):
                _say(user, line[2:])
            elif line.startswith(_ASKED):
                user.wait_for(_ASKED.strip())
                user.type(f"{line.removeprefix(_ASKED)}\r")
            elif key := _KEY.fullmatch(line):
                _press(user, key[1])
            elif line == _LEAVE:
                user.wait_for("Enter alone does nothing")
                user.type("\x04")
            elif line.strip() != "...":
                user.wait_for(line.split("...")[0].strip()[:20], seconds=15)
        user.end("\x04")
        return user.seen


def _say(user: TerminalUser, line: str) -> None:
    user.wait_for("\x1b[?2004h")
    user.type(f"{line}\r")
    user.wait_for(line[:20])


def _press(user: TerminalUser, key: str) -> None:
    before = len(user.seen)
    while len(user.seen) == before:
        time.sleep(0.7)
        user.type(key)
        user.read(2)
