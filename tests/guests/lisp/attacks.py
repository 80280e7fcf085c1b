"""Hostile Lisp on a watched host, next to a Python session that must keep answering."""

from pathlib import Path

from tests.guests.engines import KEY
from tests.guests.lisp.test_lisp_attacks import ENDS, FILLS, NAMES
from tests.guests.lisp.test_lisp_event_loop import BOMBS
from tests.guests.wasi.watched import F, Watch, watched
from tests.guests.world_calls import WorldCalls

from holdfast.guests import GuestLimits, Run, RunRequest, python_engine
from holdfast.guests.lisp import lisp_engine
from holdfast.world import FolderWorld

LIMITS = GuestLimits(seconds=1, wall_seconds=4, memory_bytes=128 << 20, calls=1000)
_PATHS = ("../outside/secret.txt", "link_up/secret.txt", "link_rel", "link_etc/passwd", "/etc/passwd", "fifo")


def lisp_attacks() -> dict[str, str]:
    """Every attack by name: malformed programs, memory, large data, Python names, and paths out of the workspace."""
    return {
        **{name: code for name, (code, _) in ENDS.items()},
        **{f"memory: {name}": code for name, code in FILLS.items()},
        **{f"large data: {name}": code for name, code in BOMBS.items()},
        **{f"name of Python: {name}": f"({name} 1)" for name in NAMES},
        **{f"read {path}": f'(world/read "{path}")' for path in _PATHS},
        **{f"write {path}": f'(world/write "{path}" "x")' for path in _PATHS},
    }


async def attack_in_lisp(folder: Path, code: str) -> tuple[Watch, Run]:
    """Run one attack on the files of a real folder."""
    workspace = folder / "workspace"
    workspace.mkdir()
    beside, engine = python_engine(key=KEY, max_workers=2), lisp_engine(key=KEY)
    try:
        async with watched(workspace, beside.guest(), crowd=30) as watch:
            request = RunRequest(code=code, tools=(F,), limits=LIMITS)
            return watch, await engine.guest().run(request, WorldCalls(FolderWorld(workspace)))
    finally:
        await beside.close()
        await engine.close()
