"""Options for scripts: --yes-to, limits, and their exit codes."""

from pathlib import Path

from tests.cli.commands import holdfast
from tests.cli.terminals import DELETE, prepared


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
