"""The processes of a sandbox, read from the init process's own /proc, and the end of a process tree."""

import contextlib
import os
import signal

_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
_MAX_ROUNDS = 2000
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
        return self.trees([top])[top]

    def trees(self, tops: "list[int]") -> "dict[int, list[int]]":
        """The living descendants of each of these processes, from one look at all."""
        children: dict[int, list[int]] = {}
        for pid, parent in self.parents().items():
            children.setdefault(parent, []).append(pid)
        trees = {}
        for top in tops:
            found = list(children.get(top, ()))
            for pid in found:
                found += children.get(pid, ())
            trees[top] = found
        return trees

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

    def shared_memory(self) -> "dict[int, int]":
        """The bytes of each System V segment of this namespace, also of those that no process has attached. Raises OSError."""
        descriptor = os.open("sysvipc/shm", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._descriptor)
        with open(descriptor, encoding="ascii") as file:
            names = file.readline().split()
            id, held = names.index("shmid"), names.index("rss")
            return {int(fields[id]): int(fields[held]) for fields in map(str.split, file)}

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

    def kill_descendants(self) -> int:
        """Kill all descendants of this process and reap them; returns how many there were."""
        most = 0
        for turn in range(_MAX_ROUNDS):
            # Who has no child has no descendant: most commands leave nothing, and to read /proc takes longer than all the rest.
            alive = self.below(os.getpid()) if _has_children() else []
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


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def send(pids: "list[int]", number: int) -> None:
    """Send a signal to processes; those that have ended are skipped."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
