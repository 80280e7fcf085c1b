"""Runs hostile code in Python guests on a monitored host, with files in a real folder, and classifies how it ended."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from tests.guests.engines import KEY
from tests.guests.wasi.watched import F, Watch, f, watched
from tests.guests.world_calls import WorldCalls

from holdfast.core import Answer, JsonObject
from holdfast.guests import Engine, GuestLimits, Run, RunRequest, python_engine
from holdfast.world import FolderWorld, Quota

LIMITS = GuestLimits(seconds=0.5, wall_seconds=2, memory_bytes=128 << 20, calls=1000)
DATA = Path(__file__).parent / "data"

Ending = Literal["refused", "stopped by an error", "harmless", "limit", "process ended"]
_ENDINGS: dict[str, Ending] = {
    "refused": "refused",
    "error": "stopped by an error",
    "ok": "harmless",
    "limit": "limit",
    "lost": "process ended",
}


def attacks() -> dict[str, str]:
    """Every attack by name: the collected ones, and those that are specific to Python."""
    return dict(_read("guest-attacks.json")) | dict(_read("python-gadgets.json"))


def disguised(code: str) -> str:
    """The same attack as text for `exec`, which the check before the run does not see."""
    return f"exec({code!r})"


class AttackCalls:
    """Answers the tool of the attacks, and performs file operations in the workspace."""

    def __init__(self, workspace: Path) -> None:
        self._files = WorldCalls(FolderWorld(workspace, quota=Quota(bytes=32 << 20, files=5000)))

    async def __call__(self, operation: str, arguments: JsonObject) -> Answer:
        return await (f if operation == "f" else self._files)(operation, arguments)


async def attack(folder: Path, code: str, engine: Engine | None = None) -> tuple[Watch, Run]:
    """Run one attack next to a guest that must keep answering, in this engine or in its own."""
    if engine is None:
        engine = python_engine(key=KEY, max_workers=4)
        try:
            return await attack(folder, code, engine)
        finally:
            await engine.close()
    workspace = folder / "workspace"
    workspace.mkdir()
    bystander, guest, fresh = engine.guest(), engine.guest(), engine.guest()
    async with watched(workspace, bystander, crowd=30) as watch:
        request = RunRequest(code=_fill_in(code, watch), tools=(F,), limits=LIMITS)
        ended = await guest.run(request, AttackCalls(workspace))
        for other in (guest, fresh):
            assert (await other.run(RunRequest(code="1 + 1"), AttackCalls(workspace))).value == 2
    for each in (bystander, guest, fresh):
        await each.close()
    return watch, ended


def ending(run: Run) -> Ending:
    """How an attack ended, in a word or two."""
    return _ENDINGS[run.status]


def _fill_in(code: str, watch: Watch) -> str:
    aimed = (
        code.replace("{OUT}", str(watch.outside))
        .replace("{TAG}", watch.tag)
        .replace("{PORT}", str(watch.port))
    )
    return aimed.replace("{{", "{").replace("}}", "}") if "{{" in aimed else aimed


def _read(name: str) -> Iterator[tuple[str, str]]:
    for attack_name, code in json.loads((DATA / name).read_text()).items():
        # Some are too long to write down. The file has a trusted expression for them instead.
        yield attack_name, code if isinstance(code, str) else eval(code["source_is"], {"__builtins__": {}})
