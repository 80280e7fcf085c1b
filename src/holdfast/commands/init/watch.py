"""The watch of a sandbox's memory, disk and processes: over a limit, the largest command is stopped.

Control groups would cap all of it, but an ordinary user rarely has one delegated; and RLIMIT_NPROC does not bind root.
"""

import os

from holdfast.commands.init import syscalls
from holdfast.commands.init.runs import Runs

INTERVAL_MS = 100


class Watch:
    """Compares use with limits, each time it is asked."""

    def __init__(
        self,
        runs: Runs,
        *,
        memory_mb: int,
        disk_mb: int,
        processes: int,
        layers: str,
        in_memory: "list[str]",
        without: "frozenset[str]",
    ) -> None:
        self._runs = runs
        self._memory_mb = memory_mb
        self._disk_mb = disk_mb
        self._processes = processes
        self._layers = layers
        self._in_memory = in_memory
        self._without = without
        self._free_at_start = self._free_mb()

    def start(self) -> None:
        """Remember how much room there is before a first command starts, and drop the memory of those that ended."""
        for segment in self._shared_memory():
            syscalls.remove_shared_memory(segment)
        self._free_at_start = self._free_mb()

    def check(self) -> None:
        """Stop the largest command if all together use too much."""
        processes = self._runs.processes()
        counts = {run: len(pids) for run, pids in processes.items()}
        if sum(counts.values()) > self._processes and "process-watch" not in self._without:
            self._stop_largest(counts, "processes")
        kept = sum(_used_mb(folder) for folder in self._in_memory) + (
            sum(self._shared_memory().values()) >> 20
        )
        used = self._runs.memory_by_run(processes)
        if sum(used.values()) + kept > self._memory_mb and "memory-watch" not in self._without:
            # What processes share was counted for each: measure again, exactly, before anything is stopped.
            used = self._runs.memory_by_run(processes, exact=True)
            if used and sum(used.values()) + kept > self._memory_mb:
                self._stop_largest(used, "memory")
        if self._free_at_start - self._free_mb() > self._disk_mb and "disk-watch" not in self._without:
            self._stop_largest(used, "disk")
            self._free_at_start = self._free_mb()

    def _shared_memory(self) -> "dict[int, int]":
        # INVARIANT: only in an IPC namespace of our own. Elsewhere the segments are the person's.
        is_own = os.getpid() == 1 and "ipc-namespace" not in self._without
        return self._runs.shared_memory() if is_own else {}

    def _stop_largest(self, used: "dict[int, int]", because: str) -> None:
        run = self._runs.find(max(used, key=lambda id: used[id])) if used else None
        if run is not None:
            run.stop(because)

    def _free_mb(self) -> int:
        found = os.statvfs(self._layers)
        return found.f_bavail * found.f_frsize >> 20


def _used_mb(folder: str) -> int:
    found = os.statvfs(folder)
    return (found.f_blocks - found.f_bfree) * found.f_frsize >> 20
