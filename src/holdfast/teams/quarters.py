"""The quarters of a foreign member: a home of its own for each pair, and an environment that is not ours."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from holdfast.teams.errors import MemberMissing
from holdfast.teams.roster import Team


def program(wanted: str, environ: Mapping[str, str], *, hint: str) -> str:
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


def prepare(folder: Path, *others: str) -> None:
    """Make the folders of a pair, for nobody else's eyes."""
    for each in (folder, *(folder / name for name in ("home", "tmp", *others))):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
