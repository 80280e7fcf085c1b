"""Options for scripts: a yes given beforehand, limits, and the exit codes they lead to."""

from pathlib import Path

from tests.cli.terminals import DELETE, prepared
from tests.cli.test_task import holdfast


def test_a_yes_given_beforehand_holds_for_its_rule_and_for_no_other(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    waits = holdfast(*words, "--yes-to", "another", "remove it", home=tmp_path)
    assert (waits.returncode, (tmp_path / "work" / "a.txt").exists()) == (5, True), waits.stderr
    done = holdfast(*words, "--yes-to", "ask-delete", "remove it", home=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Gone.\n"), done.stderr
    assert not (tmp_path / "work" / "a.txt").exists()


def test_a_limit_that_is_reached_has_its_own_exit_code(tmp_path: Path) -> None:
    done = holdfast(*prepared(tmp_path, DELETE, "Gone."), "--budget", "tokens=1", "remove it", home=tmp_path)
    assert done.returncode == 4, done.stderr
    assert holdfast("--budget", "tokens=lots", "hello", home=tmp_path).returncode == 2
