"""audit.jsonl: the audit view as a file that a person can tail. Derived from the journal, never the other way round."""

import os
from contextlib import suppress
from pathlib import Path

from holdfast.core import encode
from holdfast.core.events import Recorded, SessionRewound
from holdfast.gate.audit import AuditEntry, AuditTrail
from holdfast.gate.own_files import read_plain, remove
from holdfast.store import Journal, replace_private


class AuditFile:
    """Writes a line for each call that is over, after it is durable; a missing or damaged file is made anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._trail = AuditTrail()
        self._lines: list[bytes] | None = []
        """Lines of the past while the journal is read; None once it is followed live."""

    def attach(self, journal: Journal) -> bool:
        """Bring the file up to the journal and follow it from here. True where it had to be made anew."""
        journal.follow(self)
        lines, self._lines = self._lines or [], None
        wanted = b"".join(lines)
        present = self._present(len(wanted))
        if present is not None and wanted.startswith(present):
            self._append(wanted[len(present) :])
            return False
        if self._path.is_dir() and not self._path.is_symlink():
            remove(self._path)  # all else is replaced in one step
        replace_private(self._path, wanted)
        return True

    def _present(self, longest: int) -> bytes | None:
        """What the file holds; None where it is longer than it should be, or no plain file of ours."""
        try:
            return read_plain(self._path, max_bytes=longest)
        except FileNotFoundError:
            return b""
        except OSError:
            return None

    def __call__(self, entry: Recorded) -> None:
        """Take in one event. Trouble with the file is no trouble of the session: the journal has it all."""
        if isinstance(entry.event, SessionRewound):
            # What was taken back still happened, and its lines stay in the file.
            self._trail.forget(entry.event.turn)
            return
        lines = [_line(over) for over in self._trail.take(entry)]
        if self._lines is not None:
            self._lines += lines
        elif lines:
            with suppress(OSError):
                self._append(b"".join(lines))

    def _append(self, content: bytes) -> None:
        if not content:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)


def _line(entry: AuditEntry) -> bytes:
    return encode(entry) + b"\n"
