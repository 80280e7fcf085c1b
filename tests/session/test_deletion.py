"""Deleting a session leaves nothing of it in the data directory but its tombstone."""

import json
from pathlib import Path

from tests.cli.commands import Run, run

import holdfast.workspace as workspace
from holdfast.store import Home

__all__ = ["run"]

WORD = b"canary7f3a"


def holding(home: Path) -> list[str]:
    """The files of a data directory that contain the canary, in their name or content."""
    found = []
    for path in sorted(home.rglob("*")):
        if WORD.decode() in path.name or (path.is_file() and WORD in path.read_bytes()):
            found.append(str(path.relative_to(home)))
    return found


def test_f06_a_deleted_session_is_nowhere_in_the_data_directory(run: Run, tmp_path: Path) -> None:
    home, word = tmp_path / "holdfast", WORD.decode()
    (tmp_path / "code.py").write_text(
        f"kept = '{word}'\nopen('{word}.txt', 'w').write(('{word} ' * 40 + '\\n') * 4000)\nprint(kept)\nkept"
    )
    (tmp_path / "other.py").write_text("print('stays')")
    assert run("exec", "other.py").code == 0
    for _ in range(2):
        assert run("exec", "code.py", "--json").code == 0
        assert word in run("search", word).out, "the search index knows it"
        session = json.loads(run("sessions", "--json").out)[0]["id"]
        run("proposals", "commit", session)
        assert holding(home), "the canary is there before"
        assert run("delete", session, "--yes").code == 0
    assert holding(home) == []
    assert len(json.loads(run("sessions", "--json").out)) == 1, "the other session stays"


def test_f06_a_deleted_workspace_leaves_no_copy_of_its_files(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    made = workspace.create(home=home)
    workspace.write(made.session, "a.txt", WORD, home=home)
    folder = home.session_folder(made.session)
    (folder / "view").mkdir()
    (folder / "view" / "a.txt").write_bytes(WORD)
    workspace.delete(made.session, home=home)
    assert holding(home.root) == []
    workspace.delete(made.session, home=home)
