"""The tiers: what stands is found by trying, a weaker one is never taken silently, and the copy tier holds its walls."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.commands.conftest import run_in, run_outside

import holdfast.process.landlock as landlock
from holdfast.commands import (
    CommandRequest,
    CommandSandbox,
    SandboxStatus,
    StagedFile,
    apparmor_profile,
    open_sandbox,
    probe_sandbox,
)
from holdfast.core import LINK_MODE
from holdfast.core.errors import CommandError

pytestmark = pytest.mark.usefixtures("own_finding")

needs_landlock = pytest.mark.skipif(landlock.version() < 4, reason="the copy tier needs Landlock 4")


@pytest.fixture
async def copy(workspace: Path, tmp_path: Path, probe_folder: Path) -> AsyncIterator[CommandSandbox]:
    run_outside("git", "init", "-q", cwd=workspace)
    (workspace / ".gitignore").write_text("*.log\n")
    (workspace / "link").symlink_to("notes.txt")
    status = await probe_sandbox(probe_folder, tier="copy")
    sandbox = await open_sandbox(workspace, tmp_path / "state", status=status)
    yield sandbox
    await sandbox.close()


async def test_the_finding_is_kept_until_the_next_boot(tmp_path: Path) -> None:
    first = await probe_sandbox(tmp_path)
    assert (tmp_path / "sandbox.json").is_file()
    assert os.listdir(tmp_path) == ["sandbox.json"]
    assert await probe_sandbox(tmp_path) == first
    (tmp_path / "sandbox.json").write_text("{")
    assert await probe_sandbox(tmp_path) == first


async def test_a_data_directory_that_git_ignores_does_not_hide_the_sandbox(tmp_path: Path) -> None:
    found = await probe_sandbox(tmp_path / "home")
    run_outside("git", "init", "-q", cwd=tmp_path)
    (tmp_path / ".gitignore").write_text("*\n")
    assert await probe_sandbox(tmp_path / "home", is_repeated=True) == found


async def test_a_repeated_probe_replaces_what_an_earlier_one_found(tmp_path: Path) -> None:
    found = await probe_sandbox(tmp_path)
    kept = (tmp_path / "sandbox.json").read_text()
    (tmp_path / "sandbox.json").write_text(kept.replace(f'"tier":"{found.tier}"', '"tier":"none"'))
    assert (await probe_sandbox(tmp_path)).tier == "none"
    assert await probe_sandbox(tmp_path, is_repeated=True) == found
    assert await probe_sandbox(tmp_path) == found


def test_the_apparmor_profile_names_the_real_interpreter(tmp_path: Path) -> None:
    program = tmp_path / "my {python}*"
    program.write_text("")
    (tmp_path / "link").symlink_to(program)
    profile = apparmor_profile(str(tmp_path / "link"))
    assert f'profile holdfast "{tmp_path}/my \\{{python\\}}\\*" flags=(unconfined) {{\n  userns,\n' in profile


async def test_a_forced_tier_is_not_kept_and_says_what_is_missing(tmp_path: Path) -> None:
    none = await probe_sandbox(tmp_path, tier="none")
    assert none.tier == "none"
    assert not (tmp_path / "sandbox.json").exists()
    with pytest.raises(CommandError, match="no command sandbox"):
        await open_sandbox(tmp_path, tmp_path.parent / "state", status=none)


async def test_a_workspace_that_holds_the_layers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="layers"):
        await open_sandbox(tmp_path, tmp_path / "state", status=SandboxStatus(tier="full"))


@needs_landlock
async def test_the_copy_tier_runs_collects_and_leaves_the_base(copy: CommandSandbox, workspace: Path) -> None:
    assert copy.status.tier == "copy"
    assert any("copy of the workspace" in words for words in copy.status.missing)
    await copy.show(
        [StagedFile(path="new.txt", content=b"staged\n"), StagedFile(path="src/calc.py", content=None)]
    )
    ran = await run_in(
        copy,
        "cat new.txt link; ls src; echo more >> new.txt; echo made > made.txt; echo l > x.log; git status --short | wc -l",
    )
    assert ran.output.split() == ["staged", "notes", "5"], ran.output
    changes = await copy.collect()
    assert [(effect.path, effect.kind) for effect in changes.effects] == [
        ("made.txt", "created"),
        ("new.txt", "modified"),
    ]
    assert copy.read_changed("new.txt") == b"staged\nmore\n"
    assert "x.log" in changes.scratch
    assert sorted(os.listdir(workspace)) == [".git", ".gitignore", "link", "notes.txt", "src"]
    (workspace / "notes.txt").write_text("edited by the person\n")
    await copy.show([], hidden=["src/calc.py"])
    ran = await run_in(copy, "cat notes.txt; ls; ls src")
    assert ran.output.split() == ["edited", "by", "the", "person", "link", "notes.txt", "src", "x.log"]
    assert (await copy.collect()).effects == ()


@needs_landlock
async def test_the_copy_tier_collects_links_as_names_and_shows_staged_ones(copy: CommandSandbox) -> None:
    await copy.show([StagedFile(path="staged", content=b"notes.txt", mode=LINK_MODE)])
    assert (await copy.collect()).effects == ()
    ran = await run_in(copy, "cat staged; ln -s src made; ln -sfn src link; ln -s /etc out; rm staged")
    assert ran.output == "notes\n"
    changes = await copy.collect()
    assert [(effect.path, effect.kind, effect.mode) for effect in changes.effects] == [
        ("link", "modified", LINK_MODE),
        ("made", "created", LINK_MODE),
        ("staged", "deleted", None),
    ]
    assert copy.read_changed("made") == b"src"
    assert [each.path for each in changes.not_collected] == ["out"]


@needs_landlock
async def test_the_copy_tier_holds_files_network_and_processes(
    copy: CommandSandbox, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("SECRET-42\n")
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    other = await asyncio.create_subprocess_exec("sleep", "300")
    attack = f"""
cat {tmp_path}/secret {workspace}/notes.txt /etc/shadow ~root/.ssh/id_rsa 2>&1
echo x > {workspace}/x; echo x > /tmp/holdfast-escape; echo x > {tmp_path}/x
(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo REACHED
python3 - <<'E'
import socket, os, resource
for family, kind in ((2, 2), (1, 1), (10, 2), (2, 3), (17, 3)):
    try: socket.socket(family, kind); print("SOCKET", family, kind)
    except OSError: pass
try: s = socket.socket(); s.bind(("127.0.0.1", 0)); print("BOUND")
except OSError: pass
for pid in (1, {os.getpid()}):
    try: os.kill(pid, 0); print("SIGNALLED", pid)
    except OSError: pass
    try: print("ENVIRON", open(f"/proc/{{pid}}/environ").read()[:9])
    except OSError: pass
try: os.kill(-1, 0); print("SIGNALLED all")
except OSError: pass
for change in (
    lambda: resource.prlimit({other.pid}, resource.RLIMIT_FSIZE, (0, 0)),
    lambda: os.setpriority(os.PRIO_PROCESS, {other.pid}, 19),
    lambda: os.setpriority(os.PRIO_USER, 0, 19),
    lambda: os.sched_setscheduler({other.pid}, os.SCHED_IDLE, os.sched_param(0)),
    lambda: os.sched_setaffinity({other.pid}, os.sched_getaffinity(0)),
):
    try: change(); print("LIMITED")
    except OSError: pass
os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
os.sched_setaffinity(0, os.sched_getaffinity(0))
print("OWN")
E
unshare -Ur true && echo NAMESPACE
"""
    ran = await run_in(copy, attack)
    other.kill()
    await other.wait()
    assert "OWN" in ran.output
    for sign in (
        "LIMITED",
        "SECRET-42",
        "REACHED",
        "SOCKET",
        "BOUND",
        "ENVIRON",
        "NAMESPACE",
        "root:",
        "PRIVATE KEY",
    ):
        assert sign not in ran.output, ran.output
    if landlock.version() >= 6:
        assert "SIGNALLED" not in ran.output, ran.output
    assert not (workspace / "x").exists()
    assert not (tmp_path / "x").exists()
    assert not Path("/tmp/holdfast-escape").exists()
    server.close()
    await server.wait_closed()


@needs_landlock
async def test_in_the_copy_tier_a_program_reaches_only_the_ports_of_the_host(copy: CommandSandbox) -> None:
    listening, port = await copy.listen()
    with listening:
        program = f"import socket; print(socket.create_connection(('127.0.0.1', {port})).recv(9))"
        running = asyncio.create_task(run_in(copy, f'python3 -c "{program}"'))
        accepted, _ = await asyncio.get_running_loop().sock_accept(listening)
        with accepted:
            accepted.send(b"from host")
        assert (await running).output == "b'from host'\n"
    with pytest.raises(CommandError):
        await copy.connect(port)


@needs_landlock
async def test_the_copy_tier_stops_a_tree_that_runs_too_long(copy: CommandSandbox) -> None:
    ran = await run_in(copy, "(setsid sleep 300 &); sleep 300", timeout_seconds=0.5)
    assert ran.outcome.is_timed_out
    assert ran.outcome.seconds < 100, "the machine may be busy"
    request = CommandRequest(argv=("sh", "-c", "tty; echo $HOME"), environment={}, has_terminal=True)
    output: list[bytes] = []
    await copy.run(request, on_output=output.append)
    assert b"/dev/pts/" in b"".join(output)
