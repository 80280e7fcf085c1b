"""Pages whose commands run: every block marked `console` is typed at a terminal, and what it shows has to be what is printed.

A line with `$ ` is a command of the shell, `> ` is typed at the prompt of a conversation, `[6]` is a key pressed at a question
and `reason> ` is answered in words.
Other lines have to be seen, in their order; `...` stands for anything, within a line too.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.terminals import Typist, at_terminal

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"\[(\d)\]")
_ASKED = "reason> "
_ESCAPES = re.compile(r"\x1b\][^\x07]*\x07|\x1b\[[0-?]*[ -/]*[@-~]")
_CHANGING = (
    (re.compile(r"\d{4}(-\d\d){5}-\d{3}-\w{4}"), "SESSION"),
    (re.compile(r"\d+\.\d+ s"), "N s"),
)


@dataclass
class Step:
    """One command, what is typed at it, and what it has to show."""

    command: str
    lines: list[str] = field(default_factory=list)

    @property
    def is_talk(self) -> bool:
        return any(line.startswith("> ") or _KEY.fullmatch(line) for line in self.lines)


def steps(page: str) -> Iterator[Step]:
    """Every command of a page. What belongs to a here-document is a part of its command."""
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


def run_page(page: Path, home: Path) -> None:
    """Run a page in a home, step by step, and compare."""
    (home / "bin").mkdir()
    program = home / "bin" / "holdfast"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m holdfast "$@"\n')
    program.chmod(0o755)
    for step in steps(page.read_text(encoding="utf-8")):
        seen = _talk(step, home) if step.is_talk else _shell(step, home)
        check_seen(step, seen)


def check_seen(step: Step, seen: str) -> None:
    """The printed lines are seen, in their order."""
    shown = _plain(seen)
    place = 0
    for line in step.lines:
        if line.strip() == "..." or line.startswith("> ") or _KEY.fullmatch(line):
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


def _talk(step: Step, home: Path) -> str:
    with at_terminal(
        ["bash", "-c", step.command], home=home, **_environment(home), HOLDFAST_HOME=""
    ) as typist:
        for line in step.lines:
            if line.startswith("> "):
                _say(typist, line[2:])
            elif line.startswith(_ASKED):
                typist.wait_for(_ASKED.strip())
                typist.type(f"{line.removeprefix(_ASKED)}\r")
            elif key := _KEY.fullmatch(line):
                _press(typist, key[1])
            elif line.strip() != "...":
                typist.wait_for(line.split("...")[0].strip()[:20], seconds=15)
        typist.end("\x04")
        return typist.seen


def _say(typist: Typist, line: str) -> None:
    typist.wait_for("\x1b[?2004h")
    typist.type(f"{line}\r")
    typist.wait_for(line[:20])


def _press(typist: Typist, key: str) -> None:
    before = len(typist.seen)
    while len(typist.seen) == before:
        time.sleep(0.7)
        typist.type(key)
        typist.read(2)
