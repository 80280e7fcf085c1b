"""The real goose program, a third-party ACP agent, installed from npm into our test cache."""

import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.installed_programs import NotInstalled, cache_folder, first_error, skip_loudly
from tests.support.provider_stub import StubServer
from tests.teams.team_broker import roster

from holdfast.teams import Roster

_MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
PACKAGE, VERSION = f"@aaif/goose-binary-linux-{_MACHINE}", "1.52.0"
CACHE = cache_folder("goose")
PROGRAM = CACHE / "node_modules" / PACKAGE / "bin" / "goose"


def goose_program() -> str:
    """The path of the program. Skips the test, with a warning, if it is not installed."""
    if not PROGRAM.exists():
        skip_loudly(f"{PACKAGE}@{VERSION}")
    return str(PROGRAM)


def install() -> None:
    """Install it with npm, once. Raises NotInstalled."""
    if PROGRAM.exists():
        return
    if not shutil.which("npm"):
        raise NotInstalled("npm is not there")
    CACHE.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--prefix", str(CACHE), "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(
            [*command, f"{PACKAGE}@{VERSION}"], capture_output=True, text=True, check=False, timeout=300
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled("npm install did not come to an end") from None
    if done.returncode or not PROGRAM.exists():
        raise NotInstalled(f"npm install failed: {first_error(done.stderr)}")


def goose_roster(project: Path, stub: StubServer, settings: Mapping[str, Any] | None = None) -> Roster:
    """Teams whose members are goose, which asks before every tool and uses only the stub as provider."""
    project.mkdir(exist_ok=True)
    return roster(
        "alpha",
        "beta",
        project=str(project),
        settings=settings,
        member="acp",
        program=goose_program(),
        arguments=("acp", "--with-builtin", "developer"),
        gate="asks",
        mode="approve",
        environment=("ANTHROPIC_API_KEY",),
        variables={
            "ANTHROPIC_HOST": stub.url,
            "GOOSE_PROVIDER": "anthropic",
            "GOOSE_MODEL": "claude-sonnet-4-5",
            "GOOSE_DISABLE_KEYRING": "1",
        },
    )
