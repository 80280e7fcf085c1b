"""What the files looked like when they were last read: how a restore point knows what it need not read again.

It may be lost at any time; then everything is read once more. A file to remember it by is optional.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.core.errors import StoreUnavailable
from holdfast.store import private_folder
from holdfast.world.manifests import Entry, escape, unescape
from holdfast.world.scan import Look, Sign

_Known = tuple[Sign, str]


class Signs:
    """The signs of files at their last reading, with the stamp of what was read."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[str, _Known] = _load(file) if file else {}

    def vouch_for(self, look: Look, entry: Entry) -> bool:
        """Whether what was looked at is certainly still the file of an entry."""
        known = self._known.get(look.path)
        return known is not None and known[0] == look.sign and known[1] == entry.stamp

    def note(self, look: Look, entry: Entry) -> None:
        """A file was read right after this look."""
        if look.is_settled:
            self._known[look.path] = (look.sign, entry.stamp)
        else:
            self._known.pop(look.path, None)

    def save(self) -> None:
        """Remember for the next process. A disk that takes nothing more is no reason to fail: it may be lost."""
        if self._file is None:
            return
        fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        content = msgspec.msgpack.encode({escape(path): known for path, known in self._known.items()})
        with suppress(OSError, StoreUnavailable):
            private_folder(self._file.parent)
            try:
                with open(fresh, "wb", opener=_private) as file:
                    file.write(content)
                os.replace(fresh, self._file)
            finally:
                fresh.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    # Names of files are nobody else's business, whatever the umask. Not synced: it may be lost.
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def _load(file: Path) -> dict[str, _Known]:
    try:
        known = msgspec.msgpack.decode(file.read_bytes(), type=dict[str, _Known])
    except (OSError, ValueError):  # not what we wrote, or no UTF-8 in it
        return {}
    return {unescape(path): each for path, each in known.items()}
