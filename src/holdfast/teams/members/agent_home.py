"""The agent home: each pair's own home folder and environment for its external program."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from holdfast.store import private_folder, replace_private
from holdfast.teams.config.roster import Team
from holdfast.teams.errors import MemberMissing
from holdfast.teams.pairs import Pair

_OWNER = "pair"


def find_program(wanted: str, environ: Mapping[str, str], *, hint: str) -> str:
    """The path of a program. Raises MemberMissing."""
    found = shutil.which(wanted, path=environ.get("PATH", os.defpath))
    if found is None:
        raise MemberMissing(f"the program {wanted!r} is not installed", hint=hint)
    return found


def environment(team: Team, *, folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The program's whole environment. It inherits only what the roster names or sets."""
    named = {name: environ[name] for name in team.environment if name in environ}
    return {
        **team.variables,
        **named,
        "HOME": str(folder / "home"),
        "PATH": environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TMPDIR": str(folder / "tmp"),
    }


def create_folders(folder: Path, *others: str) -> None:
    """Create the folders of a pair, readable only by this user."""
    for each in (folder, *(folder / name for name in ("home", "tmp", *others))):
        private_folder(each)


def record_owner(folder: Path, pair: Pair) -> None:
    """Record which pair owns an agent home, so that it is known even if our journal is lost."""
    private_folder(folder)
    replace_private(folder / _OWNER, f"{pair}\n".encode())


def read_owner(folder: Path) -> Pair | None:
    """The pair that owns an agent home; None if that cannot be read."""
    try:
        return Pair.parse((folder / _OWNER).read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return None


def agent_homes(team_broker: Path) -> list[Path]:
    """The agent homes of all pairs, sorted by name."""
    try:
        return sorted(path for path in (team_broker / "pairs").iterdir() if path.is_dir())
    except FileNotFoundError:
        return []
