"""The worker process below WebAssembly: what it has, what it inherits, and that it ends with its host."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.guests.wasi.running import KEY, run

import holdfast.process.landlock as landlock
import holdfast.process.seccomp_profiles as seccomp_profiles
from holdfast.guests import Engine, Guest
from holdfast.guests.wasi import WorkerPool, wasi_engine


@pytest_asyncio.fixture(loop_scope="module")
async def engine(cache: Path, workspace: Path) -> AsyncIterator[Engine]:
    """An engine with its own zygote, so that a test finds no other processes."""
    made = wasi_engine(key=KEY, cache=cache, workspace=workspace)
    yield made
    await made.close()


async def test_a_worker_has_no_environment_no_privileges_and_its_own_descriptors_only(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_SECRET", "hidden")
    await run(guest, "open('f', 'w').close()")
    process = only_worker()
    assert Path(f"/proc/{process}/environ").read_bytes() == b""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    assert status["NoNewPrivs"] == "1"
    assert status["CapInh"] == status["CapAmb"] == "0" * 16
    assert int(status["CapPrm"], 16) in (0, 2)  # at most the right to write others' files
    if seccomp_profiles.is_known_here():
        assert status["Seccomp"] == "2"
    sockets = [link for link in links(process) if link.startswith("socket:")]
    assert len(sockets) == 1


async def test_a_later_worker_inherits_nothing_of_an_earlier_one(engine: Engine) -> None:
    await run(engine.guest(), "1")
    first = set(workers_of(zygote()))
    await run(engine.guest(), "1")
    (later,) = set(workers_of(zygote())) - first
    assert len([link for link in links(later) if link.startswith(("socket:", "anon_inode:[pidfd]"))]) == 1


async def test_closing_the_engine_leaves_no_process(cache: Path, workspace: Path) -> None:
    engine = wasi_engine(key=KEY, cache=cache, workspace=workspace)
    await run(engine.guest(), "1")
    parent, (child,) = zygote(), workers_of(zygote())
    await engine.close()
    await engine.close()
    assert not Path(f"/proc/{parent}").exists()
    assert not Path(f"/proc/{child}").exists()


async def test_workers_end_when_their_host_is_killed(cache: Path, workspace: Path) -> None:
    program = (
        "import asyncio, os, sys\nfrom pathlib import Path\nfrom holdfast.guests import RunRequest\n"
        "from holdfast.guests.wasi import wasi_engine\n"
        "async def main():\n"
        "    engine = wasi_engine(key=bytes.fromhex(sys.argv[1]), cache=Path(sys.argv[2]), workspace=Path(sys.argv[3]))\n"
        "    guest = engine.guest()\n"
        "    await guest.run(RunRequest(code='1'), None)\n"
        "    print('ready', flush=True)\n"
        "    await guest.run(RunRequest(code='import time\\ntime.sleep(60)'), None)\n"
        "asyncio.run(main())"
    )
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, KEY.hex(), str(cache), str(workspace), stdout=asyncio.subprocess.PIPE
    )
    assert host.stdout is not None
    await host.stdout.readline()
    parent = zygote(of=host.pid)
    (child,) = workers_of(parent)
    handles = [os.pidfd_open(parent), os.pidfd_open(child)]
    host.kill()
    await host.wait()
    for handle in handles:
        await gone(handle)


async def test_processes_that_were_killed_between_runs_are_replaced(engine: Engine) -> None:
    guest = engine.guest()
    await run(guest, "x = 1")
    await guest.snapshot()
    handles = [os.pidfd_open(zygote()), os.pidfd_open(only_worker())]
    os.kill(zygote(), 9)
    for handle in handles:
        await gone(handle)
    assert (await run(guest, "x")).value == 1


async def test_many_guests_are_started_at_once(cache: Path, workspace: Path) -> None:
    workers = WorkerPool(key=KEY, cache=cache)
    engine = wasi_engine(key=KEY, cache=cache, workspace=workspace, workers=workers)
    ended = await asyncio.gather(*(run(engine.guest(), f"{number}") for number in range(8)))
    assert [run.value for run in ended] == list(range(8))
    await engine.close()
    await workers.close()


def test_the_capabilities_name_the_confinement(engine: Engine) -> None:
    notes = " ".join(engine.capabilities.notes)
    assert ("landlock version" in notes) == (landlock.version() > 0)
    assert ("seccomp allow-list" in notes) == seccomp_profiles.is_known_here()


async def gone(handle: int) -> None:
    """Wait until the process of a pidfd has ended."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, ended.set)
    async with asyncio.timeout(60):
        await ended.wait()
    asyncio.get_running_loop().remove_reader(handle)
    os.close(handle)


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def zygote(of: int | None = None) -> int:
    """The zygote of a host process."""
    host = of or os.getpid()
    (found,) = [
        child for child in children(host) if b"wasi.zygote" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    return found


def workers_of(parent: int) -> list[int]:
    return children(parent)


def only_worker() -> int:
    (worker,) = workers_of(zygote())
    return worker


def links(process: int) -> list[str]:
    folder = f"/proc/{process}/fd"
    return [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
