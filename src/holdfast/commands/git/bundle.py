"""The header of a git bundle (gitformat-bundle(5)), read strictly: one ref, and prerequisites that the host has."""

import re

from holdfast.core import Value
from holdfast.core.errors import CommandError

MAX_BUNDLE_BYTES = 64 << 20
_MAX_HEADER_BYTES = 1 << 18
_MAX_PREREQUISITES = 1_000
_ID = "[0-9a-f]{40}(?:[0-9a-f]{24})?"
_PREREQUISITE = re.compile(rf"-({_ID})(?: [^\n]*)?")
_REF = re.compile(rf"({_ID}) (HEAD|refs/[^\x00-\x20\x7f~^:?*\[\\]+)")


class Bundle(Value):
    """A bundle whose header is valid. Its pack is not checked yet."""

    head: str
    prerequisites: tuple[str, ...]
    object_format: str
    pack: bytes


def parse_bundle(content: bytes) -> Bundle:
    """Read the header of a bundle that may be hostile. Raises CommandError."""
    if len(content) > MAX_BUNDLE_BYTES:
        raise CommandError(
            f"the commits are larger than {MAX_BUNDLE_BYTES >> 20} MiB",
            hint="leave large files out of the commits, for example with .gitignore",
        )
    end = content.find(b"\n\nPACK", 0, _MAX_HEADER_BYTES)
    if end < 0:
        raise CommandError("the commits did not arrive as a git bundle")
    signature, *lines = content[:end].decode("utf-8", "replace").split("\n")
    if signature not in ("# v2 git bundle", "# v3 git bundle"):
        raise CommandError("the commits did not arrive as a git bundle")
    object_format = "sha1"
    while lines and lines[0].startswith("@") and signature.startswith("# v3"):
        capability = lines.pop(0)
        if capability not in ("@object-format=sha1", "@object-format=sha256"):
            raise CommandError(f"the bundle needs {capability[:80]!r}, which is not accepted")
        object_format = capability.partition("=")[2]
    prerequisites: list[str] = []
    while lines and (found := _PREREQUISITE.fullmatch(lines[0])):
        prerequisites.append(found[1])
        lines.pop(0)
    ref = _REF.fullmatch(lines[0]) if len(lines) == 1 else None
    if ref is None or len(prerequisites) > _MAX_PREREQUISITES:
        raise CommandError("the bundle must hold exactly one ref")
    length = 64 if object_format == "sha256" else 40
    if any(len(id) != length for id in (ref[1], *prerequisites)):
        raise CommandError("the bundle has an object id of another format")
    return Bundle(
        head=ref[1],
        prerequisites=tuple(prerequisites),
        object_format=object_format,
        pack=content[end + 2 :],
    )
