"""Names for content: SHA-256 of one file, and of a whole tree."""

import hashlib
from collections.abc import Iterable

from holdfast.core import digest_bytes

NOTHING = ""
"""The fingerprint of a file that is not there."""

fingerprint_of = digest_bytes


def tree_fingerprint(files: Iterable[tuple[str, str]]) -> str:
    """Over the sorted paths and fingerprints of all files; equal exactly when the files are."""
    whole = hashlib.sha256()
    for path, fingerprint in sorted(files):
        whole.update(f"{path}\0{fingerprint}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
