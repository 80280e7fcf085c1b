"""The quarters of a foreign member: a home of its own for each pair, and an environment that is not ours."""

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
    """Where a program is. Raises MemberMissing."""
    found = shutil.which(wanted, path=environ.get("PATH", os.defpath))
    if found is None:
        raise MemberMissing(f"the program {wanted!r} is not installed", hint=hint)
    return found


def environment(team: Team, *, folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The whole environment: ours is not inherited, only what the roster names or sets."""
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
    """Make the folders of a pair, for nobody else's eyes."""
    for each in (folder, *(folder / name for name in ("home", "tmp", *others))):
        private_folder(each)


def record_owner(folder: Path, pair: Pair) -> None:
    """Note whose quarters these are, so that they are known also where our record is lost."""
    private_folder(folder)
    replace_private(folder / _OWNER, f"{pair}\n".encode())


def read_owner(folder: Path) -> Pair | None:
    """The pair that quarters belong to; None where that cannot be told."""
    try:
        return Pair.parse((folder / _OWNER).read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return None


def agent_homes(team_broker: Path) -> list[Path]:
    """The quarters of every pair of a company, by name."""
    try:
        return sorted(path for path in (team_broker / "pairs").iterdir() if path.is_dir())
    except FileNotFoundError:
        return []
