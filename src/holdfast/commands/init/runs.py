"""The commands that run in the sandbox, as the init process knows them: their supervisors, limits and ends."""

import contextlib
import json
import os
import signal

from holdfast.commands.init.listening_ports import listening_ports
from holdfast.commands.init.process_table import ProcessTable, send
from holdfast.commands.init.supervisor import KILL, Program, supervise

_MAX_STOP_ROUNDS = 100


class SupervisedRun:
    """One command: its supervisor, the pipe that controls it and the pipe that reports its end."""

    def __init__(self, *, id: int, supervisor: int, control: int, report: int) -> None:
        self.id = id
        self.supervisor = supervisor
        self.control = control
        self.report = report
        self.stopped_because = ""

    def stop(self, because: str = "") -> None:
        """End the command and all its processes."""
        self.stopped_because = self.stopped_because or because
        self.send(KILL)

    def send(self, byte: int) -> None:
        """Send a control byte to the supervisor, unless it has ended."""
        with contextlib.suppress(OSError):
            os.write(self.control, bytes([byte]))


class Runs:
    """All commands that run."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._table = ProcessTable(processes)
        self._runs: dict[int, SupervisedRun] = {}
        self._frozen: list[int] = []
        self._listening: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._runs)

    def start(self, id: int, command: Program, streams: "list[int]") -> None:
        """Start a command under a supervisor. Raises OSError."""
        report, report_end = os.pipe()
        control_end, control = os.pipe()
        supervisor = os.fork()
        if supervisor == 0:
            supervise(command, streams, report=report_end, control=control_end, processes=self._processes)
        os.close(report_end)
        os.close(control_end)
        self._runs[supervisor] = SupervisedRun(id=id, supervisor=supervisor, control=control, report=report)

    def find(self, id: int) -> "SupervisedRun | None":
        """The command with this id, if it runs."""
        return next((run for run in self._runs.values() if run.id == id), None)

    def ended(self) -> "list[dict[str, object]]":
        """Reap supervisors that ended; returns how their commands ended."""
        results = []
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            run = self._runs.pop(pid, None)
            if run is None:
                continue
            said = os.read(run.report, 4096)
            os.close(run.report)
            os.close(run.control)
            if not said:
                # The supervisor was killed, and what it supervised became a child of this process.
                self._kill_strays()
            killed = {"code": -signal.SIGKILL, "left": 0, "cpu_seconds": 0.0, "memory_mb": 0}
            result = json.loads(said) if said else killed
            results.append({"ended": run.id, "stopped_because": run.stopped_because, **result})
        return results

    def freeze(self) -> None:
        """Stop every process of every command, until `thaw`."""
        for _ in range(_MAX_STOP_ROUNDS):
            programs = [pid for pids in self.processes().values() for pid in pids]
            running = self._table.running(programs)
            if not running:
                return
            send(running, signal.SIGSTOP)
            self._frozen += running

    def thaw(self) -> None:
        """Continue what `freeze` stopped."""
        send(self._frozen, signal.SIGCONT)
        self._frozen = []

    def kill_all(self) -> None:
        """Kill every process below this one. In its own namespace the kernel does that when this process ends."""
        self._table.kill_descendants()

    def processes(self) -> "dict[int, list[int]]":
        """The processes of each command."""
        trees = self._table.trees(list(self._runs))
        return {run.id: trees[run.supervisor] for run in self._runs.values()}

    def memory_by_run(self, processes: "dict[int, list[int]]", *, exact: bool = False) -> "dict[int, int]":
        """The memory of each command in MiB."""
        measure = self._table.exact_mb if exact else self._table.resident_mb
        return {run: measure(pids) for run, pids in processes.items()}

    def shared_memory(self) -> "dict[int, int]":
        """The bytes of each segment of System V memory, which outlives its processes."""
        with contextlib.suppress(OSError):
            return self._table.shared_memory()
        return {}

    def changed_ports(self) -> "list[tuple[int, list[int]]] | None":
        """The ports on which each command listens; None if that is as it was."""
        listening = listening_ports(self._processes)
        if listening == self._listening:
            return None
        self._listening = listening
        found = []
        for run, pids in self.processes().items():
            held = self._table.sockets(pids)
            found.append((run, sorted({port for number, port in listening.items() if number in held})))
        return found

    def _kill_strays(self) -> None:
        strays = [
            pid
            for pid, parent in self._table.parents().items()
            if parent == os.getpid() and pid not in self._runs
        ]
        send(strays, signal.SIGKILL)
