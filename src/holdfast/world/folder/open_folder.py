"""Opens a folder of the user as a workspace, reopens the folder of a session, and stores which folders are trusted.

The files of a folder can mislead an agent, and its configuration, policy and servers take effect. So a folder is opened only
after the person confirmed once that they trust it. The list of trusted folders is a private file in the home.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.core.errors import InvalidConfig, InvalidInput
from holdfast.store import read_settings, replace_private
from holdfast.world.folder.files import PlainFiles
from holdfast.world.paths.names import is_within
from holdfast.world.paths.open_beneath import BeneathRoot

_ONE_PROJECT = "open the folder of one project instead"
# Including everything inside, except for the shared memory in /dev/shm.
_SYSTEM_TREE = re.compile(
    r"/((boot|dev(?!/shm(/|$))|etc|proc|sys)|(usr/)?(s?bin|include|lib\w*))(/.*)?", re.DOTALL
)
# The folder only, because a project may be inside: /usr/local/src/tool, /srv/site, /tmp/trial.
_SHARED_FOLDER = re.compile(
    r"/|/(dev/shm|home|media|mnt|opt|root|run|srv|tmp)|/var(/(cache|lib|log|spool|tmp))?"
    r"|/usr(/(share|src|local(/(s?bin|etc|include|lib|share))?))?"
)


def is_system_folder(real: str) -> bool:
    """Whether a real path is a folder of the operating system, where no agent may work and no rewind may remove files."""
    return any(folders.fullmatch(real) for folders in (_SYSTEM_TREE, _SHARED_FOLDER))


def open_folder(path: Path, home: Path) -> Path:
    """The real path of a folder. Raises InvalidInput for system folders, the user's home, our own home and folders above them.

    The caller checks whether the folder is trusted.
    """
    real = Path(os.path.realpath(path.expanduser()))
    if not real.is_dir():
        raise InvalidInput(f"{str(path)!r} is not a folder", hint="give the path of an existing folder")
    own = os.path.realpath(home)
    for place, what in (
        (own, "Holdfast's data directory"),
        (os.path.realpath(Path.home()), "the home folder"),
    ):
        if is_within(place, str(real)):
            raise InvalidInput(f"{str(path)!r} is or contains {what}", hint=_ONE_PROJECT)
    if is_system_folder(str(real)):
        raise InvalidInput(f"{str(path)!r} is a system folder", hint=_ONE_PROJECT)
    if is_within(str(real), own):
        raise InvalidInput(
            f"{str(path)!r} is inside Holdfast's data directory", hint="open a folder outside it"
        )
    return real


def reopen_folder(real: Path) -> Path:
    """The folder of a session, created again if it is gone. Raises PathRefused if its path contains a symlink."""
    # If a symlink or a file prevents the creation, opening the folder reports it.
    with suppress(OSError):
        PlainFiles(BeneathRoot(Path("/"))).make_folder(str(real).strip("/"), mode=0o700)
    with BeneathRoot(real).descriptor():
        return real


class TrustedFolders:
    """The file of trusted folders, by real path. Trust does not extend to folders inside a trusted one."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def trusts(self, folder: Path) -> bool:
        """Whether the person trusts this folder. Raises InvalidConfig if the file cannot be read."""
        return os.path.realpath(folder) in self._folders()

    def add(self, folder: Path) -> None:
        """Store that the person trusts this folder."""
        folders = sorted({*self._folders(), os.path.realpath(folder)})
        replace_private(self._file, msgspec.json.format(msgspec.json.encode(folders), indent=2))

    def _folders(self) -> list[str]:
        try:
            return msgspec.json.decode(read_settings(self._file), type=list[str])
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:  # not JSON, or not UTF-8
            raise InvalidConfig(
                f"{self._file}: {error}", hint="move the file away; Holdfast then asks again"
            ) from error
