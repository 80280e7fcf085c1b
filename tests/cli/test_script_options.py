"""Options for scripts: --yes-to, limits, and their exit codes."""

from pathlib import Path

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
    assert done.err.startswith("  error   ValueError: first\n")
    assert "Not written, because the run ended before they were closed: out.txt." in done.err
