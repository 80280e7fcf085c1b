"""Listing files by a glob, with dot files on request. For people and host programs."""

from holdfast.core.globs import compile_file_glob
from holdfast.world.contract import World

_ANY = "\ue000"
"""A letter that no pattern writes, so that only a wildcard matches it."""


def list_files(world: World, pattern: str = "**/*", *, include_hidden: bool = False) -> tuple[str, ...]:
    """The files that match a glob, sorted. With `include_hidden`, a wildcard also matches a leading dot."""
    if not include_hidden:
        return world.list(pattern)
    glob = compile_file_glob(pattern)
    return tuple(path for path in world.files() if any(map(glob.matches, _spellings(path))))


def _spellings(path: str) -> tuple[str, ...]:
    """The path, and the path with leading dots hidden from the glob: for `*env` and for `*.env`."""
    names = path.split("/")
    replaced = (f"{_ANY}{name[1:]}" if name.startswith(".") else name for name in names)
    prefixed = (f"{_ANY}{name}" if name.startswith(".") else name for name in names)
    return path, "/".join(replaced), "/".join(prefixed)
