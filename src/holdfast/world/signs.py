"""What the files looked like when they were last read: how a restore point knows what it need not read again.

It may be lost at any time; then everything is read once more. A file to remember it by is optional.
"""

import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.world.manifests import Entry, escape, unescape
from holdfast.world.scan import Look, Sign


class _Known(NamedTuple):
    sign: Sign
    looked_ns: int
    fingerprint: str


class Signs:
    """The signs of files at their last reading."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[str, _Known] = _load(file) if file else {}

    def vouch_for(self, look: Look, entry: Entry) -> bool:
        """Whether what was looked at is certainly still the file of an entry."""
        known = self._known.get(look.path)
        return (
            known is not None
            and known.sign == look.sign
            and known.fingerprint == entry.fingerprint
            and known.sign.is_settled(known.looked_ns)
        )

    def note(self, look: Look, entry: Entry) -> None:
        """A file was read right after this look."""
        self._known[look.path] = _Known(look.sign, look.looked_ns, entry.fingerprint)

    def save(self) -> None:
        """Remember for the next process."""
        if self._file is None:
            return
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        fresh.write_bytes(
            msgspec.msgpack.encode({escape(path): known for path, known in self._known.items()})
        )
        os.replace(fresh, self._file)


def _load(file: Path) -> dict[str, _Known]:
    try:
        known = msgspec.msgpack.decode(file.read_bytes(), type=dict[str, _Known])
    except (OSError, msgspec.DecodeError):
        return {}
    return {unescape(path): each for path, each in known.items()}
