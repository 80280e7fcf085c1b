"""Which folders the person trusts: one private file of the home.

What stands in a folder can lead an agent astray, and what it says for itself (its own configuration, policy, servers) is
taken up. So a folder is opened only when the person said, once, that they trust it.
"""

import os
from pathlib import Path

import msgspec

from holdfast.core.errors import InvalidConfig
from holdfast.store import replace_private


class TrustBook:
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
