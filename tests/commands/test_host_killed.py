"""When the host is killed, the kernel ends everything in its sandbox; no process of ours has to run for that."""

import os
import select
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from holdfast.commands import SandboxStatus

HOST = """
import asyncio, sys
from pathlib import Path
from holdfast.commands import CommandRequest, open_sandbox, probe_sandbox

async def main(workspace, state, cache):
    sandbox = await open_sandbox(Path(workspace), Path(state), status=await probe_sandbox(Path(cache)))
    tree = ("bash", "-c", "setsid sleep 1001 & (sleep 1001 & sleep 1001) & echo started; wait")
    request = CommandRequest(argv=tree, environment={})
    await sandbox.run(request, on_output=lambda text: print("started", flush=True))

asyncio.run(main(*sys.argv[1:]))
"""
TREE = {"bash": 2, "sleep": 3}
"""What the command consists of: a shell, a subshell and the programs that they started, one of them detached."""


def below(top: int) -> dict[int, str]:
    """The descendants of a process, and their names."""
    found: dict[int, str] = {}
    parents = {top}
    while parents:
        children = {
            int(child): Path(f"/proc/{child}/comm").read_text().strip()
            for parent in parents
            for thread in os.listdir(f"/proc/{parent}/task")
            for child in Path(f"/proc/{parent}/task/{thread}/children").read_text().split()
        }
        found |= children
        parents = set(children)
    return found


def is_whole(processes: dict[int, str]) -> bool:
    names = list(processes.values())
    return all(names.count(name) == count for name, count in TREE.items())


def test_the_kernel_alone_ends_the_programs_of_a_host_that_was_killed(
    workspace: Path, tmp_path: Path, status: SandboxStatus, probe_folder: Path
) -> None:
    places = [str(workspace), str(tmp_path / "state"), str(probe_folder)]
    with ExitStack() as cleanup:
        host = cleanup.enter_context(
            subprocess.Popen([sys.executable, "-c", HOST, *places], stdout=subprocess.PIPE)
        )
        cleanup.callback(host.kill)
        assert host.stdout is not None
        assert host.stdout.readline() == b"started\n"
        while not is_whole(processes := below(host.pid)):
            select.select([], [], [], 0.01)
        ended = {pid: os.pidfd_open(pid) for pid in processes}
        for descriptor in ended.values():
            cleanup.callback(os.close, descriptor)
            cleanup.callback(kill, descriptor)
        ours = [pid for pid, name in processes.items() if name not in TREE]
        assert len(ours) == 3  # the process that the host started, the init process and the supervisor
        for pid in ours:
            os.kill(pid, signal.SIGSTOP)
        host.kill()
        for descriptor in ended.values():
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            assert poll.poll(60_000)


def kill(process: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, signal.SIGKILL)
