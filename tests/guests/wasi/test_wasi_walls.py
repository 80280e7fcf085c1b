"""The walls below WebAssembly: what a worker's process itself may do, and that each wall stands where it should."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.guests.wasi.running import KEY, run

from holdfast.guests import Engine, Guest
from holdfast.guests.wasi import Workers, landlock, seccomp, wasi_engine

needs_landlock = pytest.mark.skipif(landlock.version() == 0, reason="this kernel has no Landlock")
needs_seccomp = pytest.mark.skipif(
    not seccomp.is_known_here(), reason="no list of system calls for this architecture"
)

CONFINED = """
import os, sys
from pathlib import Path
from holdfast.guests.wasi import confine
import socket, signal, threading
confine.confine(workspace=Path(sys.argv[1]), file_bytes=1 << 20)
try:
    {attempt}
    print('done')
except BaseException as problem:
    print(type(problem).__name__, getattr(problem, 'errno', ''))
"""


def confined(workspace: Path, attempt: str) -> str:
    """What an attempt brings in a process that has confined itself as a worker does."""
    command = [sys.executable, "-c", CONFINED.format(attempt=attempt), str(workspace)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout.strip()


@pytest.mark.parametrize(
    "attempt",
    [
        "open(sys.argv[1] + '/new', 'w').write('x')",
        "os.mkdir(sys.argv[1] + '/folder'); os.rename(sys.argv[1] + '/folder', sys.argv[1] + '/moved')",
        "t = threading.Thread(target=lambda: None); t.start(); t.join()",
    ],
)
def test_a_confined_process_can_do_its_work(workspace: Path, attempt: str) -> None:
    assert confined(workspace, attempt) == "done"


@needs_landlock
@pytest.mark.parametrize(
    "attempt",
    [
        "open('/etc/passwd')",
        "open(sys.argv[1] + '/../beside')",
        "os.listdir('/')",
        "open('/proc/self/environ')",
        "open(sys.argv[1] + '/../new', 'w')",
        "os.symlink('/etc', sys.argv[1] + '/link')",
        "os.mkfifo(sys.argv[1] + '/fifo')",
        "os.rename(sys.argv[1], sys.argv[1] + '2')",
    ],
)
def test_a_confined_process_reaches_nothing_but_the_workspace(workspace: Path, attempt: str) -> None:
    (workspace.parent / "beside").write_text("secret")
    assert confined(workspace, attempt).startswith("PermissionError")


@needs_seccomp
@pytest.mark.parametrize(
    "attempt",
    [
        "os.fork()",
        "os.execv('/bin/true', ['true'])",
        "os.posix_spawn('/bin/true', ['true'], dict())",
        "socket.socket()",
        "socket.socketpair()",
        "os.kill(os.getppid(), 0)",
        "os.setuid(0)",
        "os.chmod(sys.argv[1], 0o777)",
        "os.memfd_create('x')",
        "os.mknod(sys.argv[1] + '/node')",
        "os.sched_setaffinity(0, [0])",
        "os.setpgid(0, 0)",
    ],
)
def test_a_confined_process_makes_no_system_call_that_it_does_not_need(workspace: Path, attempt: str) -> None:
    assert confined(workspace, attempt) == "PermissionError 1"


def test_a_process_with_threads_refuses_to_call_itself_confined(workspace: Path) -> None:
    program = (
        "import sys, threading\nfrom pathlib import Path\nfrom holdfast.guests.wasi import confine\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "try: confine.confine(workspace=Path(sys.argv[1]), file_bytes=1)\nexcept OSError as refused: print(refused)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, str(workspace)], capture_output=True, text=True, check=True
    )
    assert "before it has threads" in told.stdout


async def test_a_worker_has_no_environment_no_privileges_and_its_own_descriptors_only(guest: Guest) -> None:
    os.environ["HOST_SECRET"] = "hidden"
    await run(guest, "open('f', 'w').close()")
    process = only_worker()
    assert Path(f"/proc/{process}/environ").read_bytes() == b""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    assert status["NoNewPrivs"] == "1"
    assert status["CapInh"] == status["CapAmb"] == "0" * 16
    assert int(status["CapPrm"], 16) in (0, 2)  # at most the right to write others' files
    if seccomp.is_known_here():
        assert status["Seccomp"] == "2"
    sockets = [link for link in links(process) if link.startswith("socket:")]
    assert len(sockets) == 1
    del os.environ["HOST_SECRET"]


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


async def test_workers_die_with_a_host_that_is_killed(cache: Path, workspace: Path) -> None:
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
    workers = Workers(key=KEY, cache=cache)
    engine = wasi_engine(key=KEY, cache=cache, workspace=workspace, workers=workers)
    ended = await asyncio.gather(*(run(engine.guest(), f"{number}") for number in range(8)))
    assert [run.value for run in ended] == list(range(8))
    await engine.close()
    await workers.close()


def test_the_capabilities_say_which_walls_stand(engine: Engine) -> None:
    notes = " ".join(engine.capabilities.notes)
    assert ("landlock version" in notes) == (landlock.version() > 0)
    assert ("seccomp allow-list" in notes) == seccomp.is_known_here()


async def gone(handle: int) -> None:
    """Wait until the process of a pidfd has ended."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(handle, ended.set)
    async with asyncio.timeout(20):
        await ended.wait()
    asyncio.get_running_loop().remove_reader(handle)
    os.close(handle)


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def zygote(of: int | None = None) -> int:
    """The zygote of a host: the child that was told to be one."""
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
