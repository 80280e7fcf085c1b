"""Opening a folder as a workspace: one of the user's for the first time, or that of a session again."""

import os
from contextlib import suppress
from pathlib import Path

from holdfast.core.errors import InvalidInput
from holdfast.world.descent import Root
from holdfast.world.files import PlainFiles
from holdfast.world.names import is_within


def open_folder(path: Path, home: Path) -> Path:
    """The real folder, or InvalidInput: not `/`, not the home folder, not our own home, and nothing above them.

    Whether the folder is trusted is for the caller to ask.
    """
    real = Path(os.path.realpath(path.expanduser()))
    if not real.is_dir():
        raise InvalidInput(f"{str(path)!r} is no folder", hint="name a folder that exists")
    own = os.path.realpath(home)
    for place, what in ((own, "Holdfast's own folder"), (os.path.realpath(Path.home()), "the home folder")):
        if is_within(place, str(real)) or str(real) == "/":
            raise InvalidInput(
                f"{str(path)!r} is or contains {what}", hint="open the folder of one project instead"
            )
    if is_within(str(real), own):
        raise InvalidInput(f"{str(path)!r} lies in Holdfast's own folder", hint="open a folder outside of it")
    return real


def reopen_folder(real: Path) -> Path:
    """The folder of a session, made anew where it is gone. Raises PathRefused where a link is on the way to it."""
    with suppress(
        OSError
    ):  # what cannot be made, because of a link or a file in its place, cannot be opened either
        PlainFiles(Root(Path("/"))).make_folder(str(real).strip("/"), mode=0o700)
    with Root(real).descriptor():
        return real
