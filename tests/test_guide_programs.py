"""The programs in the guides for embedding Holdfast run as they are shown."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.cli.terminals import runs
from tests.support.fork_server import forked_python

GUIDES = Path(__file__).parent.parent / "docs" / "guides"


def run(program: str, folder: Path, *replies: object, typed: str = "") -> str:
    """Run a program with a scripted model in its own folder, and return what it prints."""
    (folder / "script.json").write_text(json.dumps(replies))
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        forked_python(str(folder / "program.py")),
        env={
            "HOLDFAST_HOME": str(folder / "home"),
            "HOLDFAST_MODEL": f"scripted:{folder / 'script.json'}",
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
        },
        cwd=folder,
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def programs(guide: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (GUIDES / guide).read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    return tmp_path


def test_the_first_program_commits_what_is_proposed(project: Path) -> None:
    edit = runs("open('report.py', 'w').write('print(42)')")
    printed = run(programs("library.md")[0], project, edit, "Fixed.")
    assert "Proposed(value='Fixed.', proposals=('report.py',))" in printed
    assert (project / "shop" / "report.py").read_text() == "print(42)"


@pytest.mark.parametrize(("answer", "ending"), [("y", "completed 3 turns"), ("n", "aborted 2 turns")])
def test_f22_the_loop_that_the_host_controls_prints_what_the_guide_shows(
    project: Path, answer: str, ending: str
) -> None:
    program = programs("library.md")[1]
    printed = run(program, project, typed=f"{answer}\n")
    assert ending in printed
    assert (project / "shop" / "summary.txt").exists() == (answer == "y")
    if answer == "y":
        guide = (GUIDES / "library.md").read_text(encoding="utf-8")
        [shown] = re.findall(r"```text\n(.*?)```", guide, re.DOTALL)
        assert printed == shown.replace("commit? y\n", "commit? ")


@pytest.mark.parametrize(
    "guide", ["own-tools.md", "own-approver.md", "own-transport.md", "own-sandbox.md", "many-sessions.md"]
)
def test_the_program_of_the_guide_prints_what_it_shows(tmp_path: Path, guide: str) -> None:
    text = (GUIDES / guide).read_text(encoding="utf-8")
    shown = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    for number, (program, printed) in enumerate(zip(programs(guide), shown, strict=True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert run(program, folder, "Hello.", "Goodbye.", typed="hi\nbye\n") == printed


def test_a_messenger_of_your_own_talks_with_a_session(project: Path) -> None:
    printed = run(programs("messengers.md")[0], project, "Hello.", "Goodbye.", typed="hi\n/waiting\nbye\n")
    assert printed == "Hello.\nNothing waits in this thread.\nGoodbye.\n"
