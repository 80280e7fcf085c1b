"""Opening a folder as a workspace: one of the user's for the first time, or that of a session again.

Which folders the person trusts: one private file of the home.

What stands in a folder can lead an agent astray, and what it says for itself (its own configuration, policy, servers) is
taken up. So a folder is opened only when the person said, once, that they trust it.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.core.errors import InvalidConfig, InvalidInput
from holdfast.store import replace_private
from holdfast.world.folder.files import PlainFiles
from holdfast.world.paths.names import is_within
from holdfast.world.paths.open_beneath import BeneathRoot

_ONE_PROJECT = "open the folder of one project instead"
# With all that lies in it; the memory behind /dev/shm is there for everybody.
_SYSTEM_TREE = re.compile(
    r"/((boot|dev(?!/shm(/|$))|etc|proc|sys)|(usr/)?(s?bin|include|lib\w*))(/.*)?", re.DOTALL
)
# Itself and not what lies in it, which may be one person's project: /usr/local/src/tool, /srv/site, /tmp/trial.
_SHARED_FOLDER = re.compile(
    r"/|/(dev/shm|home|media|mnt|opt|root|run|srv|tmp)|/var(/(cache|lib|log|spool|tmp))?"
    r"|/usr(/(share|src|local(/(s?bin|etc|include|lib|share))?))?"
)


def is_system_folder(real: str) -> bool:
    """Whether a real path is a folder of the operating system: no place for an agent, and for a rewind that removes files."""
    return any(folders.fullmatch(real) for folders in (_SYSTEM_TREE, _SHARED_FOLDER))


def open_folder(path: Path, home: Path) -> Path:
    """The real folder, or InvalidInput: none of the system's, not the home folder, not our own home, and nothing above them.

    Whether the folder is trusted is for the caller to ask.
    """
    real = Path(os.path.realpath(path.expanduser()))
    if not real.is_dir():
        raise InvalidInput(f"{str(path)!r} is no folder", hint="name a folder that exists")
    own = os.path.realpath(home)
    for place, what in ((own, "Holdfast's own folder"), (os.path.realpath(Path.home()), "the home folder")):
        if is_within(place, str(real)) or str(real) == "/":
            raise InvalidInput(f"{str(path)!r} is or contains {what}", hint=_ONE_PROJECT)
    if is_system_folder(str(real)):
        raise InvalidInput(f"{str(path)!r} is a folder of the system", hint=_ONE_PROJECT)
    if is_within(str(real), own):
        raise InvalidInput(f"{str(path)!r} lies in Holdfast's own folder", hint="open a folder outside of it")
    return real


def reopen_folder(real: Path) -> Path:
    """The folder of a session, made anew where it is gone. Raises PathRefused where a link is on the way to it."""
    # What cannot be made, because of a link or a file in its place, cannot be opened either.
    with suppress(OSError):
        PlainFiles(BeneathRoot(Path("/"))).make_folder(str(real).strip("/"), mode=0o700)
    with BeneathRoot(real).descriptor():
        return real


class TrustedFolders:
    """The file of trusted folders, each by its real path. What lies in a trusted folder is not trusted by that."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def trusts(self, folder: Path) -> bool:
        """Whether the person trusts this folder. Raises InvalidConfig where the file cannot be read."""
        return os.path.realpath(folder) in self._folders()

    def add(self, folder: Path) -> None:
        """Remember that the person trusts this folder."""
        folders = sorted({*self._folders(), os.path.realpath(folder)})
        replace_private(self._file, msgspec.json.format(msgspec.json.encode(folders), indent=2))

    def _folders(self) -> list[str]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=list[str])
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:  # no JSON, or no UTF-8 in it
            raise InvalidConfig(
                f"{self._file}: {error}", hint="move the file away; you are asked again then"
            ) from error
