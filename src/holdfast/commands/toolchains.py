"""Toolchains: folders with compilers and interpreters outside the system's own, which programs can read, and their variables."""

import os
import sys
from pathlib import Path

from holdfast.core import Value

_IN_HOME = (
    (".pyenv", "PYENV_ROOT"),
    (".nvm", "NVM_DIR"),
    (".cargo/bin", ""),
    (".rustup", "RUSTUP_HOME"),
    (".sdkman", "SDKMAN_DIR"),
    (".asdf", "ASDF_DATA_DIR"),
    (".local/share/mise", "MISE_DATA_DIR"),
    (".local/share/uv/python", ""),
    ("go/bin", ""),
)
_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_VISIBLE = ("/usr/", "/bin", "/sbin", "/nix/store/", "/gnu/store/")


class Toolchains(Value):
    """The toolchains that a sandbox shows."""

    folders: tuple[Path, ...] = ()
    path: tuple[str, ...] = ()
    """The folders with programs, in the order of the host's PATH, then the system's."""
    variables: dict[str, str]


def find_toolchains(wanted: tuple[str, ...], *, workspace: Path) -> Toolchains:
    """Find toolchains: `auto` stands for the ones of the person's home and of the project's virtual environment."""
    folders: list[Path] = []
    variables: dict[str, str] = {}
    for word in wanted:
        if word != "auto":
            folders.append(Path(word).expanduser().resolve())
            continue
        for name, variable in _IN_HOME:
            folder = Path.home() / name
            if folder.is_dir():
                folders.append(folder.resolve())
                if variable:
                    variables[variable] = str(folder.resolve())
        folders += _outside_home()
    environment = _virtual_environment(workspace)
    if environment is not None:
        variables["VIRTUAL_ENV"] = str(environment)
        folders += [environment, *_base_interpreter(environment)]
    path = [*([f"{environment}/bin"] if environment else []), *_search_path(folders)]
    return Toolchains(
        folders=tuple(dict.fromkeys(folders)), path=tuple(dict.fromkeys(path)), variables=variables
    )


def _outside_home() -> list[Path]:
    """Toolchains that the host's PATH names, below /opt."""
    named = (Path(each) for each in os.environ.get("PATH", "").split(os.pathsep) if each.startswith("/opt/"))
    return [
        each.parent if each.name == "bin" else each for each in named if each.is_dir() and len(each.parts) > 2
    ]


def _virtual_environment(workspace: Path) -> Path | None:
    """The project's virtual environment: in the workspace, or the one that is active unless it is our own."""
    for name in (".venv", "venv"):
        if (workspace / name / "pyvenv.cfg").is_file():
            return workspace / name
    active = os.environ.get("VIRTUAL_ENV", "")
    if (
        active
        and Path(active).resolve() != Path(sys.prefix).resolve()
        and Path(active, "pyvenv.cfg").is_file()
    ):
        return Path(active).resolve()
    return None


def _base_interpreter(environment: Path) -> list[Path]:
    """The installation that a virtual environment was made from.

    The project wrote the file that names it, so the folder must be a Python installation: any other would become readable.
    """
    try:
        lines = (environment / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "home" and value.strip().startswith("/"):
            installation = Path(value.strip()).resolve().parent
            return [installation] if any(installation.glob("lib/python3*/os.py")) else []
    return []


def _search_path(folders: list[Path]) -> list[str]:
    shown = tuple(f"{folder}/" for folder in folders)
    found = []
    for each in os.environ.get("PATH", "").split(os.pathsep):
        real = os.path.realpath(each) if each.startswith("/") else ""
        if real and (f"{real}/".startswith(shown) or f"{real}/".startswith(_VISIBLE)):
            found.append(real)
    return [*found, *_SYSTEM_PATH]
