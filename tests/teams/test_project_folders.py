"""Projects with names of every kind: cases E1 to E9. The folder of a transcript is found by looking, never computed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.provider_stub import StubServer
from tests.teams.claude_program import claude_program
from tests.teams.scripted_provider import respond
from tests.teams.team_broker import team_broker
from tests.teams.test_claude import environ, of_claude

from holdfast.core import SystemClock
from holdfast.core.errors import InvalidConfig
from holdfast.teams import load_roster


@pytest.fixture
async def stub() -> AsyncIterator[StubServer]:
    claude_program()
    async with StubServer(respond) as server:
        yield server


@pytest.mark.parametrize(
    ("case", "name", "folder"),
    [
        ("E1 E2", "foo", "foo"),
        ("E4", "Sub-Folder", "Sub-Folder"),
        ("E5", "my_proj", "my-proj"),
        ("E6", ".agents", "-agents"),
        ("E7", "My Repo", "My-Repo"),
        ("beyond ASCII", "日本 ü", "----"),
    ],
)
async def test_a_conversation_is_found_again_whatever_its_project_is_called(
    tmp_path: Path, stub: StubServer, case: str, name: str, folder: str
) -> None:
    on = of_claude(tmp_path / name)
    async with team_broker(tmp_path, on, clock=SystemClock(), environ=environ(stub)) as broker:
        await broker.ask("alpha", "beta", "remember")
        await broker.sleep("alpha", "beta")
        reply = await broker.ask("alpha", "beta", "recall")
    assert (reply.text, reply.generation, reply.notes) == ('recall: ["remember"]', 1, ())
    (transcript,) = (tmp_path / "teams" / "pairs").glob("*/config/projects/*/*.jsonl")
    assert transcript.parent.name.endswith(f"-{folder}")


async def test_e8_two_projects_whose_folders_collide_are_told_apart(tmp_path: Path, stub: StubServer) -> None:
    (tmp_path / "b").mkdir()
    flat, deep = of_claude(tmp_path / "b-c"), of_claude(tmp_path / "b" / "c")
    on = replace(flat, teams={"alpha": flat.teams["alpha"], "beta": deep.teams["beta"]})
    async with team_broker(tmp_path, on, clock=SystemClock(), environ=environ(stub)) as broker:
        await broker.ask("external", "alpha", "flat")
        await broker.ask("external", "beta", "deep")
        replies = [await broker.ask("external", team, "recall") for team in ("alpha", "beta")]
    assert [reply.text for reply in replies] == ['recall: ["flat"]', 'recall: ["deep"]']
    one, other = (tmp_path / "teams" / "pairs").glob("*/config/projects/*")
    assert one.name == other.name


@pytest.mark.parametrize(
    "path", ["relative/path", "../parent", "", "/tmp/../etc", "/no/such/folder", "/etc/hostname"]
)
def test_e3_e9_a_project_is_an_absolute_path_to_a_folder_that_is_there(tmp_path: Path, path: str) -> None:
    file = tmp_path / "teams.yaml"
    file.write_text(f"teams:\n  a: {{project: {path!r}}}\n")
    with pytest.raises(InvalidConfig, match=r"teams\.yaml:2:"):
        load_roster(file)
