"""`holdfast merge` and `/merge`: the work of a fork comes back to the folder of its parent."""

import json
from pathlib import Path

from tests.cli.commands import holdfast
from tests.cli.terminals import prepared, runs, terminal


def code(home: Path, text: str, *words: str) -> None:
    done = holdfast("exec", *words, "-", home=home, stdin=text)
    assert done.returncode == 0, done.stderr


def forked(home: Path) -> Path:
    """A project with a session that committed one file, and a fork of it with another one staged."""
    project = home / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n")
    code(home, "open('a.txt', 'w').write('ONE\\n')", "-w", str(project), "--trust")
    [parent] = json.loads(holdfast("sessions", "--json", home=home).stdout)
    assert holdfast("rename", parent["id"], "work", home=home).returncode == 0
    assert holdfast("proposals", "commit", "work", home=home).returncode == 0
    done = holdfast("fork", "work", "-n", "other", home=home)
    assert "holdfast merge other" in done.stderr
    code(home, "open('b.txt', 'w').write('two\\n')", "--session", "other")
    return project


def test_f05_a_merge_shows_the_diff_and_commits_it_in_the_parents_folder(tmp_path: Path) -> None:
    project = forked(tmp_path)
    shown = holdfast("merge", "other", "--dry-run", home=tmp_path)
    assert shown.returncode == 0
    assert "+++ b/b.txt" in shown.stdout
    assert "a.txt" not in shown.stdout
    refused = holdfast("merge", "other", home=tmp_path)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert not (project / "b.txt").exists()
    done = holdfast("merge", "other", "--yes", "--json", home=tmp_path)
    assert [each["path"] for each in json.loads(done.stdout)["proposals"]] == ["b.txt"]
    assert (project / "b.txt").read_text() == "two\n"
    again = holdfast("merge", "other", home=tmp_path)
    assert (again.returncode, again.stdout) == (0, "the fork has nothing that its parent lacks\n")


def test_f05_a_conflict_is_named_and_refused(tmp_path: Path) -> None:
    project = forked(tmp_path)
    (project / "b.txt").write_text("mine\n")
    shown = holdfast("merge", "other", "--dry-run", home=tmp_path)
    assert "conflict: b.txt: it changed in the parent" in shown.stdout
    done = holdfast("merge", "other", "--yes", home=tmp_path)
    assert done.returncode == 1
    assert "conflict in b.txt" in done.stderr
    assert (project / "b.txt").read_text() == "mine\n"


def test_f05_a_session_says_which_folder_it_works_in(tmp_path: Path) -> None:
    project = forked(tmp_path)
    assert f"works in {project}" in holdfast("show", "work", home=tmp_path, COLUMNS="500").stderr
    fork, _ = json.loads(holdfast("sessions", "--json", home=tmp_path).stdout)
    own = tmp_path / "holdfast" / "sessions" / fork["id"] / "workspace"
    assert f"works in {own}" in holdfast("show", "other", home=tmp_path, COLUMNS="500").stderr
    assert own.is_dir()


def test_f05_at_a_terminal_only_an_explicit_yes_merges(tmp_path: Path) -> None:
    project = forked(tmp_path)
    for key, code in (("n", 3), ("y", 0)):
        with terminal("merge", "other", home=tmp_path) as user:
            assert user.wait_for("Commit 1 file in the parent's folder? [y/N]")
            user.type(f"{key}\r")
            assert user.end() == code
        assert (project / "b.txt").exists() == (key == "y")


def test_f05_a_fork_is_merged_in_the_chat(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    write = runs("open('n.txt', 'w').write('new\\n')", "I write it.")
    words = prepared(tmp_path, "One.", write, "Written.")
    with terminal("--plain", *words, "-w", str(project), "--trust", home=tmp_path) as user:
        assert user.wait_for("/help")
        for line, shown in (
            ("hello", "One."),
            ("/merge", "is not a fork"),
            ("/fork second", "/merge shows what the fork changed"),
            ("/merge", "nothing that its parent lacks"),
            ("write it", "Written."),
            ("/merge", "/merge go commits it in the parent"),
            ("/merge go", "merged 1 file into"),
        ):
            user.type(f"{line}\n")
            assert user.wait_for(shown), user.seen
            if not line.startswith("/"):
                assert user.wait_for("  ready\r"), "the turn is over"
        assert user.end("\x04") == 0
    assert (project / "n.txt").read_text() == "new\n"
