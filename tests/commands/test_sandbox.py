"""Programs run over base plus staged files, and what they change is collected and touches nothing."""

from pathlib import Path

import pytest
from tests.commands.conftest import Open, Shell

from holdfast.commands import CommandRequest, CommandSandbox, StagedFile
from holdfast.core.errors import CommandError


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_edit_test_fix_works_over_staged_files_and_the_base_stays(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    before = tree(workspace)
    test = "cd src && python3 -c 'import calc; assert calc.add(2, 2) == 4'"
    await sandbox.show([StagedFile(path="src/calc.py", content=b"def add(a, b):\n    return a * b + 1\n")])
    assert (await shell(test)).outcome.code == 1
    await shell("sed -i 's/a \\* b + 1/a + b/' src/calc.py")
    assert (await shell(test)).outcome.code == 0
    changes = await sandbox.collect()
    assert [(effect.path, effect.kind) for effect in changes.effects] == [("src/calc.py", "modified")]
    assert sandbox.read_changed("src/calc.py") == b"def add(a, b):\n    return a + b\n"
    assert tree(workspace) == before


async def test_a_program_sees_what_is_staged_and_not_what_is_hidden(
    sandbox: CommandSandbox, shell: Shell
) -> None:
    staged = [StagedFile(path="new/deep.txt", content=b"staged"), StagedFile(path="notes.txt", content=None)]
    await sandbox.show(staged, hidden=["src/calc.py"])
    ran = await shell("find . -type f | sort; cat new/deep.txt")
    assert ran.output == "./new/deep.txt\nstaged"
    assert (await sandbox.collect()).effects == ()


async def test_the_next_show_drops_what_a_program_changed(sandbox: CommandSandbox, shell: Shell) -> None:
    await sandbox.show([])
    await shell("echo x > made; rm -rf src; mkdir src; echo y > src/other")
    await sandbox.show([])
    assert (await shell("find . -type f | sort")).output == "./notes.txt\n./src/calc.py\n"
    assert (await sandbox.collect()).effects == ()


async def test_the_workspace_has_its_own_path_and_the_home_is_another(shell: Shell, workspace: Path) -> None:
    ran = await shell("pwd; echo $HOME; echo kept > ~/file")
    assert ran.output == f"{workspace}\n/home/agent\n"
    assert (await shell("cat ~/file")).output == "kept\n"


async def test_an_exit_code_a_signal_and_a_missing_program_are_told_apart(
    sandbox: CommandSandbox, shell: Shell
) -> None:
    assert (await shell("exit 7")).outcome.code == 7
    killed = (await shell("kill -TERM $$")).outcome
    assert (killed.code, killed.signal) == (None, "SIGTERM")
    missing = CommandRequest(argv=("no-such-program",), environment={})
    output: list[bytes] = []
    assert (await sandbox.run(missing, on_output=output.append)).code == 127
    assert b"no-such-program: No such file or directory" in b"".join(output)


async def test_what_a_program_leaves_behind_is_stopped_and_counted(shell: Shell) -> None:
    ran = await shell("(setsid sleep 300 &); nohup setsid sleep 300 & sleep 0.2; echo done")
    assert "done" in ran.output
    assert ran.outcome.left_processes == 2


async def test_a_program_over_its_time_is_stopped_with_its_tree(shell: Shell) -> None:
    ran = await shell("for i in 1 2 3 4; do (setsid sleep 300 &); done; sleep 300", timeout_seconds=0.5)
    assert ran.outcome.is_timed_out
    assert ran.outcome.seconds < 100, "the machine may be busy"
    assert ran.outcome.signal == "SIGKILL"


async def test_standard_input_is_empty_unless_given(shell: Shell) -> None:
    assert (await shell("cat; echo end")).output == "end\n"
    assert (await shell("cat", stdin=b"given" * 100_000)).output == "given" * 100_000


async def test_a_terminal_is_a_real_one_of_80_columns(shell: Shell) -> None:
    ran = await shell("tty; tput -T xterm cols; test -t 0 && test -t 1 && echo both", has_terminal=True)
    assert ran.output.split() == ["/dev/pts/0", "80", "both"]


async def test_no_process_waits_for_the_disk_when_a_layer_is_unmounted(
    shell: Shell, sandbox: CommandSandbox, workspace: Path
) -> None:
    await sandbox.show([])
    mounts = (await shell("cat /proc/self/mounts")).output.splitlines()
    overlays = [line.split() for line in mounts if line.startswith("overlay ")]
    volatile = {at for _, at, _, options, *_ in overlays if "volatile" in options}
    assert {str(workspace), "/home/agent"} <= volatile


async def test_the_layers_outlive_a_sandbox(open_here: Open, shell: Shell, sandbox: CommandSandbox) -> None:
    await sandbox.show([])
    await shell("mkdir -p __pycache__ && echo compiled > __pycache__/x.pyc; echo cache > ~/cache")
    await sandbox.close()
    again = await open_here()
    await again.show([])
    output: list[bytes] = []
    request = CommandRequest(argv=("cat", "__pycache__/x.pyc", "/home/agent/cache"), environment={})
    await again.run(request, on_output=output.append)
    assert b"".join(output) == b"compiled\ncache\n"


async def test_a_closed_sandbox_says_so(sandbox: CommandSandbox) -> None:
    await sandbox.close()
    with pytest.raises(CommandError, match="closed"):
        await sandbox.run(CommandRequest(argv=("true",), environment={}), on_output=lambda _: None)
