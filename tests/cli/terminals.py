"""A real terminal for tests: a pseudo-terminal with holdfast at one end and a user at the other."""

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cli.screen_emulator import shown_rows
from tests.support.fork_server import forked_python

WAIT_SECONDS = 60.0
ASKING = (
    "policy: asking\nrules:\n"
    "  - name: ask-delete\n    escalate: world.delete\n    because: deleting is yours to decide\n"
    "    examples: {matches: [{world.delete: {path: a}}], misses: [{world.read: {path: a}}]}\n"
    "  - name: stage-writes\n    stage: world.write\n    because: writes are looked at first\n"
    "    examples: {matches: [{world.write: {path: a, content: b}}], misses: [{world.read: {path: a}}]}\n"
)


EDITING = "\x1b[?2004h"
"""The editor sends this when it starts to read a line."""
_WHERE = b"\x1b[6n"
_REFRESHED = "\x1b[?25l\x1b[?7l\x1b[?7h\x1b[0m\x1b[?12l\x1b[?25h"
"""The editor's output when nothing has changed."""


class TerminalUser:
    """Types at a terminal and reads its output."""

    def __init__(self, descriptor: int, name: str, process: "subprocess.Popen[bytes]") -> None:
        self._descriptor = descriptor
        self._name = name
        self.process = process
        self.seen = ""
        self._position = 0

    def type(self, text: str) -> None:
        """Press keys. Reads meanwhile: a program that cannot write its output does not read keys either."""
        left = text.encode()
        while left:
            readable, writable, _ = select.select([self._descriptor], [self._descriptor], [], WAIT_SECONDS)
            assert readable or writable, f"the program takes no keys\n{self.seen[-3000:]}"
            if readable:
                self.read(0)
            with contextlib.suppress(BlockingIOError):
                left = left[os.write(self._descriptor, left) :]

    def resize(self, rows: int, columns: int) -> None:
        """Resize the window."""
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, text: str, *, seconds: float = WAIT_SECONDS) -> bool:
        """Read until a text appears after the last one waited for."""
        end = time.monotonic() + seconds
        while (position := self.seen.find(text, self._position)) < 0:
            left = end - time.monotonic()
            if left <= 0 or not self.read(min(left, 0.5)):
                shown = self.seen.replace(_REFRESHED, "")[-1500:]
                print(f"waiting for {text!r}, seen at last: {shown!r}")  # pytest shows it on failure
                return text in self.seen[self._position :]
        self._position = position + len(text)
        return True

    def wait_for_row(
        self, text: str, *, rows: int = 40, columns: int = 120, seconds: float = WAIT_SECONDS
    ) -> list[str]:
        """Read until a row of the screen contains a text; returns all rows. For programs that draw only what changes."""
        end = time.monotonic() + seconds
        while text not in "\n".join(shown := shown_rows(self.seen, rows, columns)):
            if time.monotonic() > end or not self.read(0.5):
                raise AssertionError("\n".join([f"waiting for {text!r} on:", *shown]))
        return shown

    def read(self, seconds: float) -> bool:
        """Read available output; False when the program has closed the terminal."""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return True
        with contextlib.suppress(OSError):
            if content := os.read(self._descriptor, 65536):
                self.seen += content.decode(errors="replace")
                for _ in range(content.count(_WHERE)):
                    os.write(
                        self._descriptor, b"\x1b[1;1R"
                    )  # the answer of a terminal to a cursor position request
                return True
        return False

    def wait_until_keys_are_read(self) -> None:
        """Read output until the program has read every key that was pressed."""
        terminal = os.open(self._name, os.O_RDONLY | os.O_NOCTTY)
        try:
            while struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, b"\0" * 4)) != (0,):
                self.read(0.01)
        finally:
            os.close(terminal)

    @property
    def is_asked(self) -> bool:
        """Whether the program waits for a single key, as at a question: it does not read whole lines, and the editor is off."""
        terminal = os.open(self._name, os.O_RDONLY | os.O_NOCTTY)
        try:
            input_flags, _, _, local_flags, *_ = termios.tcgetattr(terminal)
        finally:
            os.close(terminal)
        # The editor takes Enter as it is; a question leaves that to the terminal.
        return not local_flags & termios.ICANON and bool(input_flags & termios.ICRNL)

    def wait_for_one(self, *texts: str, seconds: float = WAIT_SECONDS) -> str:
        """Read until one of several texts appears after the last one waited for, and return it; empty if none does."""
        end = time.monotonic() + seconds
        while not any(text in self.seen[self._position :] for text in texts):
            left = end - time.monotonic()
            if left <= 0 or not self.read(min(left, 0.5)):
                return ""
        first = min((text for text in texts if text in self.seen[self._position :]), key=self._place)
        self._position = self._place(first) + len(first)
        return first

    def _place(self, text: str) -> int:
        return self.seen.index(text, self._position)

    def stacks(self) -> str:
        """Where the threads of a program from `terminal` stand, for a test that waited in vain."""
        if (code := self.process.poll()) is not None:
            return f"the program ended with {code}"
        self.process.send_signal(signal.SIGUSR1)
        start = len(self.seen)
        while self.read(2) and select.select([self._descriptor], [], [], 0)[0]:
            pass
        return self.seen[start:]

    def end(self, key: str = "") -> int:
        """Read until the program exits, pressing a key every half second; returns the exit code."""
        deadline = time.monotonic() + WAIT_SECONDS
        is_open = True
        while is_open and self.process.poll() is None and time.monotonic() < deadline:
            if key:
                self.type(key)
            # A key for every piece of output would be a flood, which the program takes for a paste.
            pause = time.monotonic() + 0.5
            while is_open and (left := pause - time.monotonic()) > 0:
                is_open = self.read(left)
        while self.read(0):
            if not select.select([self._descriptor], [], [], 0)[0]:
                break
        return self.process.wait(timeout=60)


@contextlib.contextmanager
def terminal(*words: str, home: Path, **environment: str) -> Iterator[TerminalUser]:
    """Start holdfast at a terminal of 120 by 40."""
    command = forked_python("-m", "holdfast", *words, owns_terminal=True)
    with _at_terminal(command, home=home, is_forked=True, **environment) as user:
        yield user


@contextlib.contextmanager
def at_terminal(command: Sequence[str], *, home: Path, **environment: str) -> Iterator[TerminalUser]:
    """Start any program at a terminal of 120 by 40, with its own home directory."""
    with _at_terminal(command, home=home, is_forked=False, **environment) as user:
        yield user


@contextlib.contextmanager
def _at_terminal(
    command: Sequence[str], *, home: Path, is_forked: bool, **environment: str
) -> Iterator[TerminalUser]:
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen(
        command,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "HOLDFAST_HOME": str(home / "holdfast"),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TERM": "xterm-256color",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            **environment,
        },
        cwd=home,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=None if is_forked else _own_terminal,  # a forked program takes the terminal by itself
    )
    name = os.ttyname(theirs)
    os.close(theirs)
    try:
        yield TerminalUser(ours, name, process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(ours)


def _own_terminal() -> None:
    """In the child: make the terminal its controlling terminal, so that Ctrl-C sends a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def runs(code: str, text: str = "") -> dict[str, object]:
    """A reply of a scripted model that runs code."""
    words = [{"kind": "text", "text": text}] if text else []
    call = {"kind": "tool-call", "id": "c1", "tool": "execute_code", "arguments": {"code": code}}
    return {"message": {"role": "model", "parts": [*words, call]}, "usage": {}, "finish": "tool-calls"}


def prepared(home: Path, *replies: object) -> tuple[str, ...]:
    """Create a folder with a file, a policy that asks, and a scripted model; returns the options to start holdfast with."""
    (home / "work").mkdir()
    (home / "work" / "a.txt").write_text("precious\n")
    (home / "asking.yaml").write_text(ASKING)
    (home / "script.json").write_text(json.dumps(replies))
    return ("-w", "work", "--trust", "-p", "asking.yaml", "-m", f"scripted:{home / 'script.json'}")


DELETE = runs("import os\nos.remove('a.txt')")
SPIN = runs("while True: pass")
"""Runs until it is stopped; with `let_code_run`, however busy the machine is."""


def let_code_run(home: Path) -> None:
    """Configure a time limit for code that no test reaches."""
    (home / "holdfast").mkdir(mode=0o700)
    (home / "holdfast" / "config.toml").write_text("[code]\nseconds = 600\n")
