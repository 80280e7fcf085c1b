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
