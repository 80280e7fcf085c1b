"""Checks of the sandboxes: each one runs code, and then attempts to escape."""

import secrets
import tempfile
from pathlib import Path
from typing import Literal

from holdfast.commands import SandboxStatus, probe_sandbox
from holdfast.config import load_config
from holdfast.core import pluralize
from holdfast.core.errors import HoldfastError
from holdfast.guests import Engines, Sandbox, self_test
from holdfast.services.doctor.check_result import CheckResult, State
from holdfast.store import Home

_SANDBOXES: tuple[Sandbox, ...] = ("python", "wasi", "lisp")
_KEY_BYTES = 32


async def check_engines(home: Home) -> list[CheckResult]:
    """Test each sandbox, and report its confinement."""
    with tempfile.TemporaryDirectory(prefix="holdfast-doctor-") as name:
        folder = Path(name)
        (folder / "workspace").mkdir()
        (folder / "view").mkdir()
        key = home.key() if home.root.exists() else secrets.token_bytes(_KEY_BYTES)
        engines = Engines(key=key, cache=home.cache)
        try:
            return [await _check_engine(engines, sandbox, folder) for sandbox in _SANDBOXES]
        finally:
            await engines.close()


async def check_commands(home: Home) -> list[CheckResult]:
    """Report the sandbox for programs: its tier and walls, or what prevents it."""
    enabled = _enabled(home)
    if enabled is False:
        detail = "switched off: agents cannot run programs (enabled = false under [shell] in config.toml)"
        fix = "holdfast config set shell.enabled auto"
        return [CheckResult(part="commands", state="note", detail=detail, fix=fix)]
    if home.root.exists():
        # The finding depends on the file system of the data directory, and sessions use the new one from now on.
        status = await probe_sandbox(home.cache, is_repeated=True)
    else:
        with tempfile.TemporaryDirectory(prefix="holdfast-doctor-") as name:
            status = await probe_sandbox(Path(name))
    return [describe_command_sandbox(status, is_enabled=enabled is True)]


def _enabled(home: Home) -> bool | Literal["auto"]:
    try:
        return load_config(home).shell.enabled
    except HoldfastError:
        return "auto"  # the configuration is checked separately


def describe_command_sandbox(status: SandboxStatus, *, is_enabled: bool = False) -> CheckResult:
    """The finding of a probe, with the way to a stronger sandbox, or to use a weaker one.

    `is_enabled` if the configuration lets agents use a weaker one.
    """
    if status.tier == "full":
        detail = f"full sandbox (kernel {status.kernel}; {', '.join(status.walls)})"
        return CheckResult(part="commands", state="ok", detail=detail)
    missing = "; ".join(status.missing) or "nothing that could confine programs"
    if status.tier == "none":
        detail = f"no command sandbox is available, so agents cannot run programs; it would need: {missing}"
    else:
        use = (
            "agents run programs in it as your policy decides"
            if is_enabled
            else "agents run programs in it only with enabled = true under [shell] in config.toml"
        )
        detail = f"only the {status.tier} sandbox is available; the full one would need: {missing}; {use}"
    return CheckResult(
        part="commands", state="note", detail=detail, fix=status.hint or "see docs/guides/run-commands.md"
    )


async def _check_engine(engines: Engines, sandbox: Sandbox, folder: Path) -> CheckResult:
    part = f"sandbox {sandbox}"
    try:
        if engines.needs_building(sandbox):
            return CheckResult(part=part, state="note", detail="not built yet", fix="holdfast sandbox build")
        engine = engines.engine(sandbox, workspace=folder / "workspace", view=folder / "view")
        checks = await self_test(engine)
    except HoldfastError as error:
        # Optional engines may be missing, but not the default one.
        state: State = "bad" if sandbox == "python" else "note"
        return CheckResult(
            part=part, state=state, detail=str(error), fix=error.hint or f"holdfast explain {error.code}"
        )
    if failed := [check for check in checks if not check.is_passed]:
        detail = "; ".join(f"FAILED: {check.name}, seen: {check.seen}" for check in failed)
        return CheckResult(
            part=part, state="bad", detail=detail, fix=f"do not use --sandbox {sandbox}, and report this"
        )
    version, notes = engine.capabilities.version, ", ".join(_confinement_notes(engine.capabilities.notes))
    detail = f"version {version}: {pluralize(len(checks), 'test')} passed, escape attempts refused"
    return CheckResult(part=part, state="ok", detail=f"{detail}; {notes}" if notes else detail)


def _confinement_notes(notes: tuple[str, ...]) -> list[str]:
    """The notes of an engine about its confinement."""
    return [note for note in notes if any(word in note for word in ("landlock", "seccomp", "environment"))]
