"""Options for scripts: --yes-to, limits, and their exit codes."""

from pathlib import Path

import pytest
from tests.cli.commands import Run, holdfast, run
from tests.cli.terminals import DELETE, prepared

__all__ = ["run"]


def test_yes_to_approves_its_rule_and_no_other(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    waits = holdfast(*words, "--yes-to", "requires-approval", "remove it", home=tmp_path)
    assert (waits.returncode, (tmp_path / "work" / "a.txt").exists()) == (5, True), waits.stderr
    done = holdfast(*words, "--yes-to", "ask-delete", "remove it", home=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Gone.\n"), done.stderr
    assert not (tmp_path / "work" / "a.txt").exists()


def test_a_reached_limit_has_its_own_exit_code(tmp_path: Path) -> None:
    done = holdfast(*prepared(tmp_path, DELETE, "Gone."), "--budget", "tokens=1", "remove it", home=tmp_path)
    assert done.returncode == 4, done.stderr
    assert holdfast("--budget", "tokens=lots", "hello", home=tmp_path).returncode == 2


def test_a_failed_model_is_an_error_with_a_code_and_a_hint(tmp_path: Path) -> None:
    done = holdfast(*prepared(tmp_path, DELETE), "--yes-to", "ask-delete", "remove it", home=tmp_path)
    assert done.returncode == 1
    assert "(model-unavailable)" in done.stderr
    assert "hint: " in done.stderr
    assert "\x1b" not in done.stderr, "nothing is drawn or coloured where there is no terminal"


def test_a_denied_exec_has_its_own_exit_code(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE)
    (tmp_path / "code.py").write_text("import os\nos.remove('a.txt')\n")
    done = holdfast("exec", *words[:5], "--no-escalations", "code.py", home=tmp_path)
    assert done.returncode == 3, done.stderr
    assert (tmp_path / "work" / "a.txt").exists()


def test_a_file_too_large_for_one_read_is_read_in_pieces_without_an_error(tmp_path: Path, run: Run) -> None:
    (tmp_path / "holdfast").mkdir()
    (tmp_path / "holdfast" / "config.toml").write_text("[code]\nvalue_bytes = 200_000\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "large.txt").write_text("line\n" * 60_000)
    (tmp_path / "count.py").write_text("n = 0\nfor line in open('large.txt'):\n    n += 1\nn")
    done = run("exec", "-w", str(tmp_path / "work"), "--trust", str(tmp_path / "count.py"))
    assert (done.code, done.out.strip()) == (0, "60000")
    assert "at most 200,000 bytes, and this one has 300,000, so it is read in pieces" in done.err
    assert "error" not in done.err
    (tmp_path / "whole.py").write_text("world.read(path='large.txt')")
    done = run("exec", "-w", str(tmp_path / "work"), str(tmp_path / "whole.py"))
    assert done.code == 1
    assert "error   OSError" in done.err


def test_a_failed_run_shows_its_exception_before_the_files_that_it_did_not_write(
    tmp_path: Path, run: Run
) -> None:
    (tmp_path / "code.py").write_text(
        "f = open('out.txt', 'w')\nf.write('half')\nraise ValueError('first\\nsecond')"
    )
    done = run("exec", str(tmp_path / "code.py"))
    assert done.code == 1
    assert done.err.partition("\n")[2].startswith("  error   ValueError: first\n")
    assert "Not written, because the run ended before they were closed: out.txt." in done.err


@pytest.mark.parametrize("option", [["-w", "work"], ["--trust"]])
def test_code_and_programs_in_a_session_take_no_other_folder(
    tmp_path: Path, run: Run, option: list[str]
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "code.py").write_text("1")
    for command in (
        ["exec", *option, "--session", "shop", "code.py"],
        ["run", *option, "--session", "shop", "--", "ls"],
    ):
        refused = run(*command)
        assert refused.code == 2
        assert f"--session works in the session's own folder, so {option[0]} has no effect" in refused.err
        assert "hint: leave it out" in refused.err


def test_trust_without_a_folder_is_a_mistake(tmp_path: Path, run: Run) -> None:
    (tmp_path / "code.py").write_text("1")
    refused = run("exec", "--trust", "code.py")
    assert (refused.code, run("sessions").out) == (2, "")
    assert "--trust needs -w DIR" in refused.err


def test_an_empty_folder_for_a_resumed_session_is_a_mistake(run: Run) -> None:
    refused = run("-c", "--scratch", "go on")
    assert refused.code == 2
    assert "--scratch is for new sessions" in refused.err


def test_code_in_the_place_of_a_file_is_told_where_code_goes(tmp_path: Path, run: Run) -> None:
    refused = run("exec", "print(1)")
    assert refused.code == 2
    assert "'print(1)' cannot be read: No such file or directory" in refused.err
    assert "hint: pass a file; a line of code goes to stdin: echo 'print(1)' | holdfast exec -" in refused.err


def test_a_session_of_its_own_says_where_its_files_are(tmp_path: Path, run: Run) -> None:
    (tmp_path / "code.py").write_text("open('a.txt', 'w').write('x')")
    (tmp_path / "work").mkdir()
    done = run("exec", "code.py")
    assert "works in an empty folder of its own; -w . works in this one" in done.err
    done = run("exec", "-w", "work", "--trust", "code.py")
    assert (done.code, "folder of its own" in done.err) == (0, False), done.err
