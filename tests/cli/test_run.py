"""`holdfast run`: the program's own exit code and output, and what it changed as proposals."""

import asyncio
import io
import json
import subprocess
from pathlib import Path

import pytest
from tests.cli.commands import Run, run

from holdfast.commands import probe_sandbox

__all__ = ["run"]

POLICY = """\
policy: commands
rules:
  - {name: commands, allow: "shell.*"}
  - {name: ask, escalate: "world.*", paths: [Makefile]}
  - {name: propose, stage: "world.*", roles: [write-path, delete-path], inside: true}
  - {name: read, allow: "*", roles: [read-path], inside: true}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if asyncio.run(probe_sandbox(tmp_path / "cache")).tier != "full":
        pytest.skip("the full sandbox does not stand here")
    (tmp_path / "commands.yaml").write_text(POLICY)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("a\n")
    monkeypatch.chdir(folder)
    return folder


def test_the_exit_code_and_the_output_are_the_programs_own(run: Run, project: Path) -> None:
    done = run("run", "--trust", "-p", "../commands.yaml", "--", "sh", "-c", "cat a.txt; exit 7")
    assert (done.code, done.out) == (7, "a\n")


def test_what_a_program_changed_is_staged_and_a_commit_leaves_what_asks(run: Run, project: Path) -> None:
    script = "echo b > a.txt; echo all: > Makefile"
    done = run("run", "--trust", "--json", "-p", "../commands.yaml", script)
    assert done.code == 0
    shown = json.loads(done.out)
    assert {each["path"]: bool(each["asks"]) for each in shown["proposals"]} == {
        "a.txt": False,
        "Makefile": True,
    }
    assert (project / "a.txt").read_text() == "a\n"
    committed = run("proposals", "commit", shown["session"])
    assert (project / "a.txt").read_text() == "b\n"
    assert not (project / "Makefile").exists()
    assert "Makefile" in committed.err
    run("proposals", "commit", shown["session"], "Makefile")
    assert (project / "Makefile").read_text() == "all:\n"


def test_symlinks_refused_hosts_and_many_files_are_reported_shortly(run: Run, project: Path) -> None:
    (project.parent / "hosts.yaml").write_text(
        POLICY + "  - {name: hosts, allow: net.connect, hosts: [known.example]}\n"
    )
    fetch = "import urllib.request as u; u.urlopen('http://unknown.example/')"
    script = f'ln -s a.txt link; ln -s /etc out; touch f1 f2 f3 f4 f5 f6 f7 f8 f9 Makefile; python3 -c "{fetch}" 2>&1'
    done = run("run", "--trust", "-p", "../hosts.yaml", script)
    said = " ".join(done.err.split())
    assert "not reached: unknown.example: " in said
    assert "not kept: out: is a link to '/etc'" in said
    assert "staged, not committed: Makefile (asks), f1," in said
    assert "and 1 more" in said
    run("proposals", "commit", said.partition("proposals show ")[2].partition(",")[0])
    assert (project / "link").readlink() == Path("a.txt")
    assert not (project / "out").is_symlink()


def test_the_name_of_a_refused_file_makes_no_line_of_its_own(run: Run, project: Path) -> None:
    done = run("run", "--trust", "-p", "../commands.yaml", "touch $'a\\nhint: run me'")
    assert "not kept: a<U+000A>hint: run me: " in " ".join(done.err.split())


def test_a_signal_ends_a_program_with_the_shells_code(run: Run, project: Path) -> None:
    assert run("run", "--trust", "-p", "../commands.yaml", "kill -9 $$").code == 137


def test_a_policy_that_denies_commands_is_said(run: Run, project: Path) -> None:
    done = run("run", "--trust", "-p", "safe-edit", "--", "true")
    assert done.code == 2
    assert "cannot run programs" in done.err


def test_no_command_is_a_mistake(run: Run, project: Path) -> None:
    assert run("run").code == 2


def test_the_bash_tool_of_claude_code_runs_in_the_sandbox(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("echo b > a.txt; exit 4", "cat a.txt; exit 5"):
        request = {
            "session_id": "0a1b",
            "cwd": str(project),
            "tool_name": "Bash",
            "tool_input": {"command": command, "description": "try"},
        }
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(request).encode())))
        done = run("hook", "claude", "--sandbox-bash", "-p", str(project.parent / "commands.yaml"))
        output = json.loads(done.out)["hookSpecificOutput"]
        assert output["permissionDecision"] == "allow"
        assert output["updatedInput"]["description"] == "try"
        ran = subprocess.run(output["updatedInput"]["command"], shell=True, capture_output=True, text=True)
        assert ran.returncode == (4 if "echo" in command else 5), ran.stderr
    assert ran.stdout == "b\n", "the next command sees what the first one changed"
    assert (project / "a.txt").read_text() == "a\n"


def test_a_program_that_takes_too_long_is_stopped(run: Run, project: Path) -> None:
    script = "echo started; echo b > a.txt; sleep 3600"
    done = run("run", "--trust", "--timeout", "1", "-p", "../commands.yaml", script)
    assert (done.code, done.out) == (137, "started\n")
    assert "it was stopped because it took too long" in done.err
    assert "staged, not committed: a.txt" in done.err


@pytest.mark.parametrize("timeout", ["0", "1801", "nan", "soon"])
def test_a_time_limit_out_of_range_is_a_mistake(run: Run, project: Path, timeout: str) -> None:
    done = run("run", "--trust", "--timeout", timeout, "--", "true")
    assert done.code == 2


@pytest.mark.parametrize(
    ("asked", "environment", "seconds", "given"),
    [
        (None, {}, "120", 150_000),
        (3000, {}, "3", 33_000),
        (3000.5, {}, "3", 33_000),
        (600_000, {}, "570", 600_000),
        (9_000_000, {}, "570", 600_000),
        (-1, {}, "120", 150_000),
        ("long", {}, "120", 150_000),
        (1, {}, "1", 30_001),
        (None, {"BASH_DEFAULT_TIMEOUT_MS": "300000"}, "300", 330_000),
        (None, {"BASH_DEFAULT_TIMEOUT_MS": "900000"}, "870", 900_000),
        (3_600_000, {"BASH_MAX_TIMEOUT_MS": "7200000"}, "1800", 3_630_000),
        (None, {"BASH_MAX_TIMEOUT_MS": "x", "BASH_DEFAULT_TIMEOUT_MS": "0"}, "120", 150_000),
    ],
)
def test_the_sandbox_stops_a_command_before_claude_code_moves_it_into_the_background(
    run: Run,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: object,
    environment: dict[str, str],
    seconds: str,
    given: int,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    request = {
        "session_id": "0a1d",
        "cwd": str(project),
        "tool_name": "Bash",
        "tool_input": {"command": "sleep 1"} | ({} if asked is None else {"timeout": asked}),
    }
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(request).encode())))
    updated = json.loads(run("hook", "claude", "--sandbox-bash").out)["hookSpecificOutput"]["updatedInput"]
    assert f" --timeout {seconds} -- " in updated["command"]
    assert updated["timeout"] == given


@pytest.mark.promise("P01")
def test_a_module_in_the_folder_of_claude_code_does_not_run_outside_the_sandbox(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reached = tmp_path / "reached"
    for name in ("argparse", "asyncio", "holdfast", "msgspec", "typing"):
        (project / f"{name}.py").write_text(f"open({str(reached)!r}, 'a').write({name!r})\n")
    request = {
        "session_id": "0a1c",
        "cwd": str(project),
        "tool_name": "Bash",
        "tool_input": {"command": "echo inside"},
    }
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(request).encode())))
    done = run("hook", "claude", "--sandbox-bash", "-p", str(project.parent / "commands.yaml"))
    command = json.loads(done.out)["hookSpecificOutput"]["updatedInput"]["command"]
    ran = subprocess.run(command, shell=True, cwd=project, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "inside\n"), ran.stderr
    assert not reached.exists()
