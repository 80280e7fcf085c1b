"""Background processes live across calls, take input and signals, and see files staged while they run."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands.conftest import Shell

from holdfast.commands import CommandRequest, CommandSandbox, ProcessStatus, StagedFile
from holdfast.core.errors import CommandError

SERVER = "import http.server; http.server.HTTPServer(('127.0.0.1', 8123), http.server.SimpleHTTPRequestHandler).serve_forever()"


class Output:
    """Collects output and lets a test wait for a text in it."""

    def __init__(self) -> None:
        self.text = ""
        self._changed = asyncio.Event()

    def __call__(self, data: bytes) -> None:
        self.text += data.decode(errors="replace")
        self._changed.set()

    async def until(self, wanted: str) -> None:
        async with asyncio.timeout(60):
            while wanted not in self.text:
                self._changed.clear()
                await self._changed.wait()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the kernel has no event for it
            await asyncio.sleep(0.01)


async def start(sandbox: CommandSandbox, *argv: str, has_terminal: bool = False) -> tuple[str, Output]:
    output = Output()
    request = CommandRequest(argv=argv, environment={}, has_terminal=has_terminal)
    return await sandbox.start(request, name=argv[0], on_output=output), output


def status_of(sandbox: CommandSandbox, process: str) -> ProcessStatus:
    return next(each for each in sandbox.processes() if each.id == process)


async def test_a_server_and_a_client_in_different_calls_reach_each_other(
    sandbox: CommandSandbox, shell: Shell
) -> None:
    process, _ = await start(sandbox, "python3", "-c", SERVER)
    await until(lambda: status_of(sandbox, process).ports)
    assert status_of(sandbox, process).ports == (8123,)
    client = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123/notes.txt').read())"
    assert (await shell(f'python3 -c "{client}"')).output == "b'notes\\n'\n"
    outcome = await sandbox.stop(process)
    assert outcome.signal == "SIGTERM"
    assert not status_of(sandbox, process).is_running
    assert status_of(sandbox, process).outcome == outcome


async def test_the_host_connects_to_a_port_inside_and_listens_there(
    sandbox: CommandSandbox, shell: Shell
) -> None:
    process, _ = await start(sandbox, "python3", "-c", SERVER)
    await until(lambda: status_of(sandbox, process).ports)
    reader, writer = await asyncio.open_connection(sock=await sandbox.connect(8123))
    writer.write(b"GET /notes.txt HTTP/1.0\r\n\r\n")
    assert (await reader.read()).endswith(b"notes\n")
    writer.close()
    listening, port = await sandbox.listen()
    with listening:
        program = f"import socket; print(socket.create_connection(('127.0.0.1', {port})).recv(9))"
        running = asyncio.create_task(shell(f'python3 -c "{program}"'))
        accepted, _ = await asyncio.get_running_loop().sock_accept(listening)
        with accepted:
            accepted.send(b"from host")
        assert (await running).output == "b'from host'\n"


async def test_a_connection_to_a_port_without_a_server_is_refused(sandbox: CommandSandbox) -> None:
    with pytest.raises(CommandError, match="refused"):
        await sandbox.connect(8124)


async def test_input_and_signals_reach_a_background_process(sandbox: CommandSandbox) -> None:
    process, output = await start(
        sandbox, "bash", "-c", "trap 'echo interrupted' INT; while read line; do echo got $line; done"
    )
    await sandbox.write(process, b"one\n")
    await output.until("got one")
    await sandbox.signal(process, "SIGINT")
    await output.until("interrupted")
    with pytest.raises(CommandError, match="not a signal"):
        await sandbox.signal(process, "SIG_DFL")
    await sandbox.stop(process)
    with pytest.raises(CommandError, match="ended"):
        await sandbox.write(process, b"late")


async def test_a_terminal_takes_what_a_person_would_type(sandbox: CommandSandbox) -> None:
    process, output = await start(sandbox, "python3", "-i", "-q", has_terminal=True)
    await output.until(">>> ")
    await sandbox.write(process, b"6*7\n")
    await output.until("42")
    await sandbox.stop(process)


async def test_a_terminal_turns_ctrl_c_into_an_interrupt(sandbox: CommandSandbox) -> None:
    # A shell runs its trap between two commands, so no moment is too early for the key. Python's own
    # prompt forgets an interrupt that arrives just before it waits for input.
    program = "trap 'echo interrupted; exit' INT; echo ready; while :; do sleep 0.05; done"
    process, output = await start(sandbox, "bash", "-c", program, has_terminal=True)
    await output.until("ready")
    await sandbox.write(process, b"\x03")
    await output.until("interrupted")
    await sandbox.stop(process)


async def test_files_staged_while_a_process_runs_are_seen_by_it(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    await sandbox.show([StagedFile(path="a.txt", content=b"first")])
    process, output = await start(
        sandbox, "bash", "-c", "while read file; do cat $file; echo; echo end $file; done"
    )
    await shell("echo changed > notes.txt; chmod 600 notes.txt; rm -r src")
    assert len((await sandbox.collect()).effects) == 2
    (workspace / "later.txt").write_text("from the person")
    await sandbox.show([StagedFile(path="a.txt", content=b"second")], hidden=["later.txt"])
    await sandbox.write(process, b"a.txt\nnotes.txt\nsrc/calc.py\nlater.txt\n")
    await output.until("end later.txt")
    assert "second" in output.text
    assert "notes\n" in output.text
    assert "return a - b" in output.text
    assert "from the person" not in output.text
    assert (await sandbox.collect()).effects == ()
    await sandbox.show([])
    (workspace / "notes.txt").write_text("edited by the person\n")
    await sandbox.show([])
    await sandbox.write(process, b"notes.txt\nlater.txt\n")
    await output.until("from the person")
    assert "edited by the person" in output.text
    assert (await sandbox.collect()).effects == ()
    await sandbox.stop(process)
    await sandbox.show([])
    assert (await shell("cat a.txt notes.txt")).output.endswith("edited by the person\n")


async def test_what_the_person_adds_where_a_program_deleted_is_not_taken_for_deleted(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    (workspace / "lib").mkdir()
    (workspace / "lib" / "old").write_text("old")
    await sandbox.show([])
    process, _ = await start(sandbox, "sleep", "60")
    await shell("rm -r src lib; mkdir lib made")
    assert [each.path for each in (await sandbox.collect()).effects] == ["lib/old", "src/calc.py"]
    (workspace / "made").write_text("by the person\n")
    (workspace / "src" / "calc.py").unlink()
    (workspace / "src").rmdir()
    (workspace / "src").write_text("a file in its place\n")
    (workspace / "lib" / "old").unlink()
    (workspace / "lib" / "new").write_text("new\n")
    for alive in (True, False):
        assert (await sandbox.collect()).effects == ()
        await sandbox.show([])
        output = (await shell("cat src lib/new made")).output
        assert output == "a file in its place\nnew\nby the person\n"
        if alive:
            await sandbox.stop(process)
    await shell("rm -r lib")
    await sandbox.collect()
    await sandbox.show([StagedFile(path="lib/new", content=None)])
    (workspace / "lib" / "newer").write_text("newer")
    assert (await sandbox.collect()).effects == ()


async def test_a_folder_whose_deletion_is_committed_is_removed_beside_a_program(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    (workspace / "src" / "inner").mkdir()
    (workspace / "src" / "inner" / "old.py").write_text("old\n")
    deletion = StagedFile(path="src/inner/old.py", content=None)
    await sandbox.show([deletion])
    process, _ = await start(sandbox, "sleep", "600")
    await sandbox.show([deletion])
    (workspace / "src" / "inner" / "old.py").unlink()
    (workspace / "src" / "inner").rmdir()
    await sandbox.show([])
    assert (await shell("ls -A src/inner; rm -r src; ls -A")).output == "notes.txt\n"
    assert [(each.path, each.kind) for each in (await sandbox.collect()).effects] == [
        ("src/calc.py", "deleted")
    ]
    # What the person puts there again is seen.
    (workspace / "src" / "inner").mkdir()
    (workspace / "src" / "inner" / "old.py").write_text("again\n")
    await sandbox.show([])
    assert (await shell("cat src/inner/old.py")).output == "again\n"
    await sandbox.stop(process)


async def test_a_new_folder_whose_files_are_committed_is_replaced_by_a_file_beside_a_program(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    await sandbox.show([])
    process, _ = await start(sandbox, "sleep", "600")
    await shell("mkdir made; echo 1 > made/one")
    await sandbox.collect()
    (workspace / "made").mkdir()
    (workspace / "made" / "one").write_text("1\n")
    (workspace / "made" / "two").write_text("2\n")
    await sandbox.show([])
    assert (await shell("ls made; rm -r made; echo file > made")).output == "one\ntwo\n"
    assert [(each.path, each.kind) for each in (await sandbox.collect()).effects] == [
        ("made", "created"),
        ("made/one", "deleted"),
        ("made/two", "deleted"),
    ]
    await sandbox.stop(process)


async def test_what_the_person_adds_to_a_folder_that_a_program_replaced_is_not_taken_for_deleted(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    """The folder is opaque in the layer, also where it has the names of the base."""
    await sandbox.show([])
    process, _ = await start(sandbox, "sleep", "600")
    await shell("rm -r src; mkdir src; echo 1 > src/calc.py")
    await sandbox.collect()
    (workspace / "src" / "calc.py").write_text("1\n")
    await sandbox.show([])
    (workspace / "src" / "added").write_text("by the person\n")
    assert (await sandbox.collect()).effects == ()
    await sandbox.show([])
    assert (await shell("cat src/*")).output == "by the person\n1\n"
    await sandbox.stop(process)


async def test_what_a_background_process_writes_is_collected_while_it_runs(sandbox: CommandSandbox) -> None:
    await sandbox.show([])
    process, output = await start(
        sandbox,
        "bash",
        "-c",
        "echo made > made.txt; echo ready; read x; echo $x > more.txt; echo more; sleep 60",
    )
    await output.until("ready")
    assert [effect.path for effect in (await sandbox.collect()).effects] == ["made.txt"]
    await sandbox.write(process, b"x\n")
    await output.until("more")
    await sandbox.show([])  # not collected yet: it stays
    assert [effect.path for effect in (await sandbox.collect()).effects] == ["more.txt"]
    await sandbox.stop(process)


async def test_a_cancelled_run_leaves_no_process(sandbox: CommandSandbox) -> None:
    output = Output()
    request = CommandRequest(argv=("bash", "-c", "echo up; (setsid sleep 600 &) ; sleep 600"), environment={})
    running = asyncio.create_task(sandbox.run(request, on_output=output))
    await output.until("up")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await sandbox.show([])  # would be refused while a program runs beside
    assert sandbox.processes() == ()


HOST = """
import asyncio, sys
from pathlib import Path
from holdfast.commands import CommandRequest, open_sandbox, probe_sandbox

async def main():
    folder = Path(sys.argv[1])
    status = await probe_sandbox(folder)
    sandbox = await open_sandbox(folder / "workspace", folder / "state", status=status)
    request = CommandRequest(argv=("bash", "-c", "for i in 1 2 3; do (setsid sleep 6543 &); done; echo up; sleep 6543"), environment={})
    await sandbox.start(request, name="server", on_output=lambda data: print("up", flush=True))
    await sandbox.run(request, on_output=lambda data: print("up", flush=True))

asyncio.run(main())
"""


async def test_killing_the_host_leaves_no_process(tmp_path: Path, workspace: Path, status: object) -> None:
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert host.stdout is not None
    async with asyncio.timeout(60):
        while (await host.stdout.readline()) and not _sleepers():
            pass
        await until(lambda: len(_sleepers()) >= 8)
    assert len(_sleepers()) == 8
    host.kill()
    await host.wait()
    began = asyncio.get_running_loop().time()
    await until(lambda: not _sleepers())
    assert asyncio.get_running_loop().time() - began < 2


def _sleepers() -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", b"6543"]:
            found.append(folder.name)
    return found
