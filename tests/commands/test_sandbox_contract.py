"""Every command sandbox keeps the contract: one suite over the fake and, where it stands, the real one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from holdfast.commands import (
    CommandOutcome,
    CommandRequest,
    CommandSandbox,
    ScriptedSandbox,
    StagedFile,
    folder_files,
    open_sandbox,
    probe_sandbox,
)
from holdfast.core import digest_bytes
from holdfast.core.errors import CommandError

OpenAt = Callable[[Path], Awaitable[CommandSandbox]]


async def open_scripted(workspace: Path) -> CommandSandbox:
    return ScriptedSandbox(lambda: folder_files(workspace))


async def open_real(workspace: Path) -> CommandSandbox:
    status = await probe_sandbox(workspace.parent / "cache")
    if status.tier == "none":
        pytest.skip(f"no sandbox stands here: {', '.join(status.missing)}")
    return await open_sandbox(workspace, workspace.parent / "state", status=status)


@pytest.fixture(params=[open_scripted, open_real], ids=["scripted", "real"])
def open_at(request: pytest.FixtureRequest) -> OpenAt:
    opener: OpenAt = request.param
    return opener


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.txt").write_text("a\n")
    (folder / "b.txt").write_text("b\n")
    return folder


@pytest.fixture
async def sandbox(open_at: OpenAt, workspace: Path) -> AsyncIterator[CommandSandbox]:
    opened = await open_at(workspace)
    await opened.show(())
    yield opened
    await opened.close()


async def run(sandbox: CommandSandbox, *argv: str, stdin: str | None = None) -> tuple[CommandOutcome, str]:
    output = bytearray()
    request = CommandRequest(
        argv=argv, environment={}, stdin=stdin.encode() if stdin is not None else None, timeout_seconds=20
    )
    outcome = await sandbox.run(request, on_output=output.extend)
    return outcome, output.decode()


async def test_a_program_runs_and_its_output_and_exit_code_come_back(sandbox: CommandSandbox) -> None:
    outcome, output = await run(sandbox, "echo", "hello")
    assert (outcome.code, outcome.signal, output) == (0, "", "hello\n")
    assert outcome.output_bytes == 6
    outcome, _ = await run(sandbox, "false")
    assert outcome.code == 1


async def test_a_program_reads_its_standard_input(sandbox: CommandSandbox) -> None:
    _, output = await run(sandbox, "cat", stdin="words\n")
    assert output == "words\n"


async def test_a_program_sees_base_and_staged_files_and_changes_neither(
    sandbox: CommandSandbox, workspace: Path
) -> None:
    await sandbox.show(
        [
            StagedFile(path="a.txt", content=b"staged\n"),
            StagedFile(path="new/c.txt", content=b"c\n"),
            StagedFile(path="b.txt", content=None),
        ]
    )
    assert (await run(sandbox, "cat", "a.txt", "new/c.txt"))[1] == "staged\nc\n"
    assert (await run(sandbox, "cat", "b.txt"))[0].code == 1
    await run(sandbox, "rm", "a.txt")
    assert sorted(path.name for path in workspace.iterdir()) == ["a.txt", "b.txt"]
    assert (workspace / "a.txt").read_text() == "a\n"


async def test_changes_are_relative_to_what_was_shown(sandbox: CommandSandbox) -> None:
    await sandbox.show([StagedFile(path="a.txt", content=b"staged\n")])
    assert (await sandbox.collect()).effects == ()
    await run(sandbox, "tee", "b.txt", "c.txt", stdin="new\n")
    await run(sandbox, "rm", "a.txt")
    effects = {each.path: each for each in (await sandbox.collect()).effects}
    assert {path: each.kind for path, each in effects.items()} == {
        "a.txt": "deleted",
        "b.txt": "modified",
        "c.txt": "created",
    }
    assert effects["b.txt"].digest == digest_bytes(b"new\n")
    assert effects["b.txt"].size == 4
    assert sandbox.read_changed("c.txt") == b"new\n"


async def test_equal_content_is_no_change_and_a_new_mode_is_one(sandbox: CommandSandbox) -> None:
    await run(sandbox, "tee", "a.txt", stdin="a\n")
    assert (await sandbox.collect()).effects == ()
    await run(sandbox, "chmod", "755", "b.txt")
    (effect,) = (await sandbox.collect()).effects
    assert (effect.path, effect.kind, effect.mode) == ("b.txt", "modified", 0o755)


async def test_a_change_is_collected_once(sandbox: CommandSandbox) -> None:
    await run(sandbox, "tee", "a.txt", "c.txt", stdin="new\n")
    await run(sandbox, "rm", "b.txt")
    assert len((await sandbox.collect()).effects) == 3
    assert (await sandbox.collect()).effects == ()
    await run(sandbox, "rm", "c.txt")
    await run(sandbox, "tee", "b.txt", stdin="b\n")
    assert [(each.path, each.kind) for each in (await sandbox.collect()).effects] == [
        ("b.txt", "created"),
        ("c.txt", "deleted"),
    ]
    await sandbox.show(())
    assert (await run(sandbox, "cat", "a.txt", "b.txt"))[1] == "a\nb\n"
    assert (await sandbox.collect()).effects == ()


async def test_showing_again_drops_changes_and_keeps_scratch(
    sandbox: CommandSandbox, workspace: Path
) -> None:
    await run(sandbox, "mkdir", "-p", "node_modules")
    await run(sandbox, "tee", "a.txt", "node_modules/x", stdin="new\n")
    collected = await sandbox.collect()
    assert [each.path for each in collected.effects] == ["a.txt"]
    assert any(path.startswith("node_modules") for path in collected.scratch)
    await sandbox.show(())
    assert (await run(sandbox, "cat", "a.txt"))[1] == "a\n"
    assert (await run(sandbox, "cat", "node_modules/x"))[1] == "new\n"
    await sandbox.drop_scratch()
    await sandbox.show(())
    assert (await run(sandbox, "cat", "node_modules/x"))[0].code == 1


async def test_a_staged_file_takes_the_place_of_a_folder_that_a_program_removed(
    sandbox: CommandSandbox, workspace: Path
) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "a").write_text("1")
    await sandbox.show(())
    await run(sandbox, "rm", "-rf", "d")
    await sandbox.show([StagedFile(path="d/a", content=None), StagedFile(path="d", content=b"file\n")])
    assert (await run(sandbox, "cat", "d"))[1] == "file\n"
    assert (await sandbox.collect()).effects == ()


async def test_a_change_of_the_base_is_seen_after_the_next_show(
    sandbox: CommandSandbox, workspace: Path
) -> None:
    await run(sandbox, "tee", "a.txt", stdin="mine\n")
    (workspace / "a.txt").write_text("theirs\n")
    await sandbox.show(())
    assert (await run(sandbox, "cat", "a.txt"))[1] == "theirs\n"


async def test_hidden_files_cannot_be_read_and_a_write_to_one_is_not_collected(
    sandbox: CommandSandbox,
) -> None:
    await sandbox.show((), hidden={"a.txt"})
    assert (await run(sandbox, "cat", "a.txt"))[0].code == 1
    await run(sandbox, "tee", "a.txt", stdin="blind\n")
    collected = await sandbox.collect()
    assert collected.effects == ()
    assert [each.path for each in collected.not_collected] == ["a.txt"]


async def test_a_program_that_takes_too_long_is_stopped(sandbox: CommandSandbox) -> None:
    request = CommandRequest(argv=("sleep", "60"), environment={}, timeout_seconds=0.2)
    outcome = await sandbox.run(request, on_output=lambda _: None)
    assert outcome.is_timed_out
    assert outcome.code is None


async def test_a_background_process_lives_across_runs_until_it_is_stopped(sandbox: CommandSandbox) -> None:
    request = CommandRequest(argv=("sleep", "60"), environment={})
    process = await sandbox.start(request, name="nap", on_output=lambda _: None)
    await run(sandbox, "true")
    (status,) = sandbox.processes()
    assert (status.id, status.name, status.is_running) == (process, "nap", True)
    outcome = await sandbox.stop(process)
    assert outcome.code is None
    assert outcome.signal
    assert not sandbox.processes()[0].is_running


async def test_a_signal_reaches_a_background_process(sandbox: CommandSandbox) -> None:
    request = CommandRequest(argv=("sleep", "60"), environment={})
    process = await sandbox.start(request, name="nap", on_output=lambda _: None)
    await sandbox.signal(process, "SIGTERM")
    outcome = await sandbox.stop(process)
    assert outcome.signal == "SIGTERM"


async def test_a_process_that_does_not_exist_is_an_error(sandbox: CommandSandbox) -> None:
    with pytest.raises(CommandError):
        await sandbox.stop("p99")


async def test_a_closed_sandbox_runs_nothing(open_at: OpenAt, workspace: Path) -> None:
    sandbox = await open_at(workspace)
    await sandbox.close()
    with pytest.raises(CommandError):
        await run(sandbox, "true")
