"""The processes of a sandbox, read from the init process's own /proc, and the end of a process tree."""

import contextlib
import os
import signal

_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
_MAX_ROUNDS = 2000
_LISTEN = "0A"
_MAX_FILE = 64 << 10


class ProcessTable:
    """Reads /proc through a descriptor, which still works where the mount is out of view."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def parents(self) -> "dict[int, int]":
        """Every living process and its parent. Zombies are left out."""
        return {pid: parent for pid, (state, parent) in self._states().items() if state not in "ZX"}

    def below(self, top: int) -> "list[int]":
        """The living descendants of a process."""
        parents = self.parents()
        found = {top}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return [pid for pid in found if pid != top]

    def running(self, pids: "list[int]") -> "list[int]":
        """Those of these processes that are not stopped."""
        states = self._states()
        return [pid for pid in pids if pid in states and states[pid][0] not in "TtZX"]

    def resident_mb(self, pids: "list[int]") -> int:
        """The memory of these processes; what they share counts for each."""
        pages = 0
        for pid in pids:
            fields = self._read(f"{pid}/statm").split()
            pages += int(fields[1]) if len(fields) > 1 else 0
        return pages * _PAGE_KB // 1024

    def exact_mb(self, pids: "list[int]") -> int:
        """The memory of these processes with shared pages divided among them; slower."""
        kb = 0
        for pid in pids:
            for line in self._read(f"{pid}/smaps_rollup").splitlines():
                if line.startswith("Pss:"):
                    kb += int(line.split()[1])
        return kb // 1024

    def listening(self) -> "dict[int, int]":
        """The ports on which somebody listens, by the number of the socket."""
        found = {}
        for name in ("1/net/tcp", "1/net/tcp6"):
            for line in self._read(name).splitlines()[1:]:
                fields = line.split()
                if len(fields) > 9 and fields[3] == _LISTEN:
                    found[int(fields[9])] = int(fields[1].rpartition(":")[2], 16)
        return found

    def sockets(self, pids: "list[int]") -> "set[int]":
        """The numbers of the sockets that these processes hold."""
        found = set()
        for pid in pids:
            with contextlib.suppress(OSError):
                folder = os.open(
                    f"{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._descriptor
                )
                try:
                    for name in os.listdir(folder):
                        target = os.readlink(name, dir_fd=folder)
                        if target.startswith("socket:["):
                            found.add(int(target[8:-1]))
                finally:
                    os.close(folder)
        return found

    def kill_below(self, top: int) -> int:
        """Kill all descendants of a process and reap them; returns how many there were."""
        most = 0
        for turn in range(_MAX_ROUNDS):
            alive = self.below(top)
            if not alive:
                break
            most = max(most, len(alive))
            # Stopped first, so that none of them starts another while the rest is killed.
            send(alive, signal.SIGSTOP if turn == 0 else signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
        return most

    def _states(self) -> "dict[int, tuple[str, int]]":
        found = {}
        for name in os.listdir(self._descriptor):
            if name.isdigit() and (line := self._read(f"{name}/stat")):
                # The name of a program can contain anything, also a closing parenthesis.
                state, parent = line[line.rindex(")") + 2 :].split()[:2]
                found[int(name)] = (state, int(parent))
        return found

    def _read(self, path: str) -> str:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._descriptor)
        except OSError:
            return ""
        try:
            return os.read(descriptor, _MAX_FILE).decode("ascii", "replace")
        except OSError:
            return ""
        finally:
            os.close(descriptor)


def send(pids: "list[int]", number: int) -> None:
    """Send a signal to processes; those that have ended are skipped."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
