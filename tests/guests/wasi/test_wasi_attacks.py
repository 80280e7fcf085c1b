"""Hostile code on a monitored host gets nothing, harms nothing, and the other sessions continue."""

from pathlib import Path

import pytest
from tests.guests.wasi.running import KEY, run
from tests.guests.wasi.watched import attack, attacks, watched

from holdfast.guests.wasi import WorkerPool, wasi_engine

ATTACKS = attacks()
SHORT = (
    "builtins_getattr_import", "bytearray_4g", "cb_flood", "cb_huge_arg", "cb_private_names", "ctypes_libc", "deep_parse2",
    "dotdot_relative", "env", "fd_exhaust", "fork_bomb", "hardlink_out", "int_edge", "json_deep", "kill_parent",
    "listdir_root", "pathlib_tricks", "print_flood", "proc_environ", "protocol_forge", "read_huge_file", "socket_connect",
    "sparse_truncate", "subclasses_walk", "symlink_chain", "sys_getframe", "trailing_slash_symlink", "write_outside",
)  # fmt: skip
"""One of each kind; a few of them run to their limit of two seconds."""
MAX_GAP_SECONDS = 1.0
"""The longest pause of the event loop. Generous, because other tests run at the same time; a host that hangs pauses for longer."""
MAX_GROWN_BYTES = 96 << 20


async def survive(cache: Path, workers: WorkerPool, workspace: Path, code: str, *, crowd: int) -> None:
    """Run an attack next to a guest that must keep answering, and check that nothing got out."""
    quiet_folder = workspace.parent / "quiet"
    quiet_folder.mkdir()
    target = wasi_engine(key=KEY, cache=cache, workspace=workspace, workers=workers)
    bystander = wasi_engine(key=KEY, cache=cache, workspace=quiet_folder, workers=workers)
    async with watched(workspace, bystander.guest(), crowd=crowd) as watch:
        await run(bystander.guest(), "1")
        ended = await attack(target, watch, code)
        answered = watch.answers
        while watch.answers == answered:  # the bystander answers again after the attack
            await run(bystander.guest(), "1")
    assert watch.escapes(ended) == []
    assert watch.longest_gap < MAX_GAP_SECONDS
    assert watch.grown_bytes < MAX_GROWN_BYTES
    fresh = target.guest()
    assert (await run(fresh, "1 + 1")).value == 2
    await target.close()
    await bystander.close()


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.promise("P01")
async def test_an_attack_gets_nothing_and_other_sessions_continue(
    cache: Path, workers: WorkerPool, workspace: Path, name: str
) -> None:
    await survive(cache, workers, workspace, ATTACKS[name], crowd=30)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(ATTACKS))
async def test_each_attack_gets_nothing_and_other_sessions_continue(
    cache: Path, workers: WorkerPool, workspace: Path, name: str
) -> None:
    await survive(cache, workers, workspace, ATTACKS[name], crowd=30_000 if name == "readdir_huge" else 30)
