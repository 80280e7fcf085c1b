"""A process that is killed during a command: what a resume finds, with the real sandbox, store and files."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from tests.support.fork_server import forked_python

from holdfast.app import Runtime
from holdfast.commands import probe_sandbox
from holdfast.core.events import CallSettled, CommandStarted, EffectsJudged
from holdfast.models import ScriptedModel
from holdfast.session import Settings

MAIN = Path(__file__).with_name("killed_command_main.py")
POLICY = """\
policy: killed
rules:
  - {{name: commands, allow: "shell.*"}}
  - {{name: read, allow: "*", roles: [read-path], inside: true}}
  - {{name: change, {verdict}: "world.*", roles: [write-path, delete-path], inside: true}}
"""


@pytest.mark.parametrize(
    ("verdict", "point", "written"),
    [
        ("allow", "running", 0),
        ("allow", "judged", 0),
        ("stage", "judged", 0),
        ("allow", "applying", 20),
    ],
)
def test_a_command_of_a_killed_process_is_unknown_and_nothing_is_written_twice_or_half(
    tmp_path: Path, verdict: str, point: str, written: int
) -> None:
    if asyncio.run(probe_sandbox(tmp_path / "cache")).tier != "full":
        pytest.skip("the full sandbox does not stand here")
    project = tmp_path / "project"
    project.mkdir()
    (project / "log").write_text("")
    (tmp_path / f"{verdict}.yaml").write_text(POLICY.format(verdict=verdict))
    killed = subprocess.run(
        forked_python(str(MAIN), str(tmp_path), verdict, point),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert killed.returncode == -9, killed.stderr
    left = contents(project)
    assert len(left) - 1 == max(written - 1, 0), "the log is the first of the files that are written"
    asyncio.run(check_resumed(tmp_path, killed.stdout.strip(), was_judged=point != "running"))
    assert contents(project) == left, "a resume writes nothing of it"
    assert all(text == f"whole {name.removeprefix('new')}\n" for name, text in left.items() if name != "log")
    assert left["log"] == ("ran\n" if written else "")


async def check_resumed(folder: Path, session_id: str, *, was_judged: bool) -> None:
    """Resume the session: the command is settled as unknown, did not run again, and proposes nothing."""
    runtime = await Runtime.start(home=folder / "home", settings=Settings(acts_with="tools"), servers=())
    session = await runtime.resume(session_id, model=ScriptedModel(["I look first."]))
    assert [call.operation for call in session.unknown_calls()] == ["shell.run"]
    await session.advance()
    recorded = [entry.event for entry in session._journal.recorded]
    assert [each.status for each in recorded if isinstance(each, CallSettled)] == ["unknown"]
    assert sum(isinstance(each, CommandStarted) for each in recorded) <= 1
    assert any(isinstance(each, EffectsJudged) for each in recorded) == was_judged
    assert session.proposals() == ()
    assert session.unknown_calls() == ()
    await runtime.close()


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
