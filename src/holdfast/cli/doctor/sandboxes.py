"""Sandboxes: each tried for real. It runs code, and then tries to break out of where it is."""

import secrets
import tempfile
from pathlib import Path

from holdfast.cli.doctor.finding import CheckResult, State
from holdfast.core import pluralize
from holdfast.core.errors import HoldfastError
from holdfast.guests import Engines, Sandbox, self_test
from holdfast.store import Home

_SANDBOXES: tuple[Sandbox, ...] = ("python", "wasi", "lisp")
_KEY_BYTES = 32


async def check_engines(home: Home) -> list[CheckResult]:
    """What is in force in each sandbox, and whether its walls hold."""
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


async def _check_engine(engines: Engines, sandbox: Sandbox, folder: Path) -> CheckResult:
    part = f"sandbox {sandbox}"
    try:
        if engines.needs_building(sandbox):
            return CheckResult(part=part, state="note", told="not built yet", fix="holdfast sandbox build")
        engine = engines.engine(sandbox, workspace=folder / "workspace", view=folder / "view")
        checks = await self_test(engine)
    except HoldfastError as error:
        # An engine that is an extra may be missing; the one that runs by default may not.
        state: State = "bad" if sandbox == "python" else "note"
        return CheckResult(
            part=part, state=state, told=str(error), fix=error.hint or f"holdfast explain {error.code}"
        )
    if failed := [check for check in checks if not check.is_passed]:
        told = "; ".join(f"FAILED: {check.name}, seen: {check.seen}" for check in failed)
        return CheckResult(
            part=part, state="bad", told=told, fix=f"do not use --sandbox {sandbox}, and report this"
        )
    version, walls = engine.capabilities.version, ", ".join(_confinement_notes(engine.capabilities.notes))
    told = f"version {version}: {pluralize(len(checks), 'test')} passed, escape attempts refused"
    return CheckResult(part=part, state="ok", told=f"{told}; {walls}" if walls else told)


def _confinement_notes(notes: tuple[str, ...]) -> list[str]:
    """Of what an engine says of itself, the part that is about its walls."""
    return [note for note in notes if any(word in note for word in ("landlock", "seccomp", "environment"))]
