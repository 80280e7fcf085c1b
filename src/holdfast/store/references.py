"""References: which contents a set of events mentions, directly or through other contents.

A content is named by its SHA-256 in hex, wherever that stands: in an event, or in another content such as the list of
files of a restore point. So a mention is found without knowing what each of them means.
"""

import re
from collections.abc import Iterable
from contextlib import suppress

from holdfast.core.errors import JournalDamaged
from holdfast.store.blobs import Blobs
from holdfast.store.rows import Connection

_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def digests_in(content: bytes) -> set[str]:
    """What could be names of contents."""
    return {match.decode() for match in _DIGEST.findall(content)}


def mentioned(connection: Connection, blobs: Blobs, bodies: Iterable[bytes]) -> set[str]:
    """The contents that are here and that these events mention."""
    open_ends = set[str]().union(*(digests_in(body) for body in bodies))
    found: set[str] = set()
    while open_ends:
        digest = open_ends.pop()
        if digest in found:
            continue
        try:
            held = blobs.held(connection, digest)
        except JournalDamaged:
            continue
        found.add(digest)
        with suppress(OSError):  # what a lost file mentioned, nobody can tell
            open_ends |= digests_in(held if isinstance(held, bytes) else held.read_bytes()) - found
    return found
