"""References to blobs. A blob is named by its SHA-256 in hex wherever it is mentioned: in an event, or in another blob
such as the file list of a restore point. So a reference is found without knowing the format around it.
"""

import re

_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def digests_in(content: bytes) -> set[str]:
    """Find every string that could be the name of a blob."""
    return {match.decode() for match in _DIGEST.findall(content)}
