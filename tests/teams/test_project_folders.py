"""Projects with unusual names: cases E1 to E9. Transcripts are found by searching, not by computing a folder name."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.provider_stub import StubServer
from tests.teams.claude_program import claude_program
from tests.teams.scripted_provider import respond
from tests.teams.team_broker import team_broker
from tests.teams.test_claude import claude_roster, environ

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
        ("E1 E2 E4 to E7 and beyond ASCII", ".Sub-Folder my_proj 日本 ü", "-Sub-Folder-my-proj-----"),
        pytest.param("E1 E2", "foo", "foo", marks=pytest.mark.soak),
        pytest.param("E4", "Sub-Folder", "Sub-Folder", marks=pytest.mark.soak),
        pytest.param("E5", "my_proj", "my-proj", marks=pytest.mark.soak),
        pytest.param("E6", ".agents", "-agents", marks=pytest.mark.soak),
        pytest.param("E7", "My Repo", "My-Repo", marks=pytest.mark.soak),
        pytest.param("beyond ASCII", "日本 ü", "----", marks=pytest.mark.soak),
    ],
)
async def test_a_conversation_is_found_again_whatever_the_project_name(
    tmp_path: Path, stub: StubServer, case: str, name: str, folder: str
) -> None:
    team_roster = claude_roster(tmp_path / name)
    async with team_broker(tmp_path, team_roster, clock=SystemClock(), environ=environ(stub)) as broker:
        await broker.ask("alpha", "beta", "remember")
        await broker.sleep("alpha", "beta")
        reply = await broker.ask("alpha", "beta", "recall")
    assert (reply.text, reply.generation, reply.notes) == ('recall: ["remember"]', 1, ())
    (transcript,) = (tmp_path / "teams" / "pairs").glob("*/config/projects/*/*.jsonl")
    assert transcript.parent.name.endswith(f"-{folder}")


async def test_e8_two_projects_with_colliding_folder_names_stay_separate(
    tmp_path: Path, stub: StubServer
) -> None:
    (tmp_path / "b").mkdir()
    flat, deep = claude_roster(tmp_path / "b-c"), claude_roster(tmp_path / "b" / "c")
    team_roster = replace(flat, teams={"alpha": flat.teams["alpha"], "beta": deep.teams["beta"]})
    async with team_broker(tmp_path, team_roster, clock=SystemClock(), environ=environ(stub)) as broker:
        await broker.ask("external", "alpha", "flat")
        await broker.ask("external", "beta", "deep")
        replies = [await broker.ask("external", team, "recall") for team in ("alpha", "beta")]
    assert [reply.text for reply in replies] == ['recall: ["flat"]', 'recall: ["deep"]']
    one, other = (tmp_path / "teams" / "pairs").glob("*/config/projects/*")
    assert one.name == other.name


@pytest.mark.parametrize(
    "path", ["relative/path", "../parent", "", "/tmp/../etc", "/no/such/folder", "/etc/hostname"]
)
def test_e3_e9_a_project_must_be_an_absolute_path_of_an_existing_folder(tmp_path: Path, path: str) -> None:
    file = tmp_path / "teams.yaml"
    file.write_text(f"teams:\n  a: {{project: {path!r}}}\n")
    with pytest.raises(InvalidConfig, match=r"teams\.yaml:2:"):
        load_roster(file)
