"""Opening a folder: refused if it is not a project, and trusted only after one confirmation."""

import json
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from tests.cli.terminals import prepared, terminal
from tests.support.fork_server import forked_python

from holdfast.core.errors import InvalidConfig
from holdfast.world import TrustedFolders

QUESTION = "Do you trust this folder? [y/N] "
REPLY = {"message": {"role": "model", "parts": [{"kind": "text", "text": "done here"}]}, "usage": {}}
CODE = "print('the code ran')"


def words(home: Path) -> list[str]:
    (home / "code.py").write_text(CODE)
    return [word for word in prepared(home, REPLY) if word != "--trust"]


def script(home: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        forked_python("-m", "holdfast", *options),
        env={"PATH": "", "HOME": str(home), "HOLDFAST_HOME": str(home / "holdfast")},
        cwd=home,
        input="",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("answer", ["", "n", "no", "x", "Y N"])
def test_only_a_clear_yes_opens_a_folder(tmp_path: Path, answer: str) -> None:
    with terminal(*words(tmp_path), "--plain", "do it", home=tmp_path) as typist:
        assert typist.wait_for(QUESTION)
        typist.type(f"{answer}\n")
        assert typist.wait_for("nothing in it was read")
        assert typist.end() == 3
    assert not (tmp_path / "holdfast").exists(), "no session, no store, no memory of it"


def test_leaving_at_the_question_opens_nothing(tmp_path: Path) -> None:
    given = words(tmp_path)
    with terminal(*given, "--plain", "do it", home=tmp_path) as typist:
        assert typist.wait_for(QUESTION)
        typist.type("\x04")
        assert typist.end() == 3
    with terminal(*given, "--plain", "do it", home=tmp_path) as typist:
        assert typist.wait_for(QUESTION)
        typist.process.send_signal(signal.SIGINT)
        assert typist.end() == 130
    assert not (tmp_path / "holdfast").exists()


def test_trust_is_asked_for_once_and_stored_privately(tmp_path: Path) -> None:
    given = words(tmp_path)
    with terminal(*given, "--plain", "do it", home=tmp_path) as typist:
        assert typist.wait_for(QUESTION)
        typist.type("y\n")
        assert typist.wait_for("done here")
        assert typist.end() == 0
    file = tmp_path / "holdfast" / "trusted-folders.json"
    assert json.loads(file.read_text()) == [str(tmp_path / "work")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = script(tmp_path, *given, "do it")
    assert (again.returncode, again.stdout) == (0, "done here\n")


def test_a_conversation_begins_after_a_yes(tmp_path: Path) -> None:
    with terminal(*words(tmp_path), home=tmp_path) as typist:
        assert typist.wait_for(QUESTION)
        typist.type("yes\n")
        assert typist.wait_for(">")
        typist.type("hello\r")
        assert typist.wait_for("done here")
        assert typist.end("\x04") == 0


def test_a_script_says_beforehand_that_it_trusts_a_folder(tmp_path: Path) -> None:
    given = words(tmp_path)
    refused = script(tmp_path, *given, "do it")
    assert refused.returncode == 2
    assert "is not trusted yet" in refused.stderr
    assert "--trust" in refused.stderr
    assert not (tmp_path / "holdfast").exists()
    assert script(tmp_path, "exec", "-w", "work", "code.py").returncode == 2
    trusting = script(tmp_path, "exec", "-w", "work", "--trust", "code.py")
    assert (trusting.returncode, trusting.stdout.split("\n")[0]) == (0, "the code ran")
    assert script(tmp_path, *given, "do it").returncode == 0, "it is remembered"


@pytest.mark.parametrize("folder", ["/", ".", "..", "holdfast", "holdfast/sessions"])
def test_trust_does_not_open_a_folder_that_is_not_a_project(tmp_path: Path, folder: str) -> None:
    (tmp_path / "holdfast" / "sessions").mkdir(parents=True)
    (tmp_path / "code.py").write_text(CODE)
    refused = script(tmp_path, "exec", "-w", folder, "--trust", "code.py")
    assert refused.returncode == 2
    assert "hint: open" in refused.stderr
    assert not (tmp_path / "holdfast" / "trusted-folders.json").exists()


def test_trust_applies_to_the_real_folder_only(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(project)
    (tmp_path / "home").mkdir()
    book = TrustedFolders(tmp_path / "home" / "trusted")
    book.add(tmp_path / "link")
    assert book.trusts(project)
    assert book.trusts(tmp_path / "link")
    for other in (tmp_path, project / "inner", tmp_path / "project2"):
        assert not book.trusts(other)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    assert not book.trusts(tmp_path / "link")


@pytest.mark.parametrize("content", [b'{"folders": "/"}', b'["/", "\xff"]'])
def test_a_damaged_book_trusts_nothing_and_says_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "trusted").write_bytes(content)
    with pytest.raises(InvalidConfig):
        TrustedFolders(tmp_path / "trusted").trusts(Path("/"))
