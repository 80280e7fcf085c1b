"""Nested AGENTS.md: the nearest file applies to what lies below it, and the model gets it when it first works there."""

import os
import subprocess
from pathlib import Path

import pytest

from holdfast import open as open_session
from holdfast.agent.folder_instructions import MAX_FILES
from holdfast.agent.project_instructions import read_folder_instructions, read_project_instructions
from holdfast.core import Limits, Ok, UserMessage, digest_bytes
from holdfast.core.events import CallSettled, InstructionsRead
from holdfast.gate import SharedFileLabels
from holdfast.models import OnPiece, Prompt, Reply, ScriptedModel, ScriptedReply, use
from holdfast.session import Session
from holdfast.world import TrustedFolders

READ = use("world__read", {"path": "web/api/routes.py"})


class HearingModel(ScriptedModel):
    """Keeps the instructions of folders in each request."""

    def __init__(self, *replies: ScriptedReply) -> None:
        super().__init__(replies)
        self.heard: list[list[str]] = []

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        texts = [each.text for each in prompt.messages if isinstance(each, UserMessage)]
        self.heard.append([text for text in texts if text.startswith("[Instructions")])
        return await super().ask(prompt, on_piece)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "web" / "api").mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Use tabs.\n")
    (folder / "web" / "AGENTS.md").write_text("Use two spaces.\n")
    (folder / "web" / "api" / "CLAUDE.md").write_text("Routes are sorted.\n")
    (folder / "web" / "api" / "routes.py").write_text("routes = []\n")
    (folder / "notes.txt").write_text("x")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
def home(tmp_path: Path, project: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    TrustedFolders(folder / "trusted-folders.json").add(project)
    return folder


def _given(session: Session) -> list[str]:
    return [entry.event.file for entry in session.recorded if isinstance(entry.event, InstructionsRead)]


async def test_the_instructions_of_a_folder_join_once_when_the_agent_first_works_there(
    home: Path, project: Path
) -> None:
    model = HearingModel(use("world__read", {"path": "notes.txt"}), READ, READ, "Done.", READ, "Again.")
    async with open_session(home=home, workspace=project, model=model) as session:
        assert list(session.instruction_files) == ["AGENTS.md"]
        await session.send("look")
        assert [len(each) for each in model.heard] == [0, 0, 2, 2]
        outer, inner = model.heard[-1]
        assert "web/AGENTS.md" in outer
        assert "Use two spaces." in outer
        assert "web/api/CLAUDE.md" in inner
        assert "Routes are sorted." in inner
        await session.send("again")
        assert list(session.instruction_files) == ["AGENTS.md", "web/AGENTS.md", "web/api/CLAUDE.md"]
    assert len(model.heard[-1]) == 2
    assert _given(session) == ["web/AGENTS.md", "web/api/CLAUDE.md"]


async def test_a_resumed_session_gives_none_twice_and_a_compacted_one_gives_them_again(
    home: Path, project: Path
) -> None:
    model = HearingModel(READ, "Done.", READ, "Again.", "A summary.")
    async with open_session(home=home, workspace=project, model=model) as session:
        await session.send("look")
    async with open_session(home=home, resume=session.id, model=model) as session:
        await session.send("again")
        assert len(_given(session)) == 2
        assert len(model.heard[-1]) == 2
        await session.compact(keep_turns=0)
        assert session.instruction_files == ("AGENTS.md",)
    later = HearingModel(READ, "Done.")
    async with open_session(home=home, resume=session.id, model=later) as session:
        await session.send("once more")
    assert [len(each) for each in later.heard] == [0, 2]


async def test_no_call_is_made_twice_if_the_turn_stops_after_instructions_joined(
    home: Path, project: Path
) -> None:
    model = HearingModel(READ, "Done.")
    async with open_session(home=home, workspace=project, model=model, budget=Limits(steps=1)) as session:
        await session.send("look")
        assert len(_given(session)) == 2
        await session.raise_budget(Limits(steps=5))
        assert await session.advance() == Ok(value="Done.")
        assert sum(isinstance(entry.event, CallSettled) for entry in session.recorded) == 1
    assert len(model.heard[-1]) == 2


@pytest.mark.parametrize(
    "call",
    [
        use("execute_code", {"code": "open('/workspace/web/new.py', 'w').write('x')"}),
        use("world__list", {"pattern": "web/**/*.py"}),
        use("shell__run", {"argv": ["true"], "cwd": "web"}),
        use("shell__run", {"script": "cat 'web/api/routes.py'|wc -l"}),
    ],
)
async def test_whatever_reaches_a_folder_brings_its_instructions(
    home: Path, project: Path, call: Reply
) -> None:
    model = HearingModel(call, "Done.")
    async with open_session(home=home, workspace=project, model=model) as session:
        await session.send("look")
    assert _given(session)[0] == "web/AGENTS.md", session.recorded[-3:]


async def test_in_a_folder_that_is_not_trusted_they_stay_data(tmp_path: Path, project: Path) -> None:
    model = HearingModel(READ, "Done.")
    async with open_session(home=tmp_path / "other", workspace=project, model=model) as session:
        await session.send("look")
    assert model.heard == [[], []]


def test_what_git_ignores_and_another_repository_bring_no_instructions(tmp_path: Path, project: Path) -> None:
    (project / ".gitignore").write_text("node_modules/\n")
    for folder in ("node_modules/left-pad", "vendor/other", "linked"):
        (project / folder).mkdir(parents=True)
        (project / folder / "AGENTS.md").write_text("Obey.")
    (project / "vendor" / "other" / ".git").write_text("gitdir: elsewhere")
    (project / "linked" / "AGENTS.md").unlink()
    (project / "linked" / "AGENTS.md").symlink_to("../node_modules/left-pad/AGENTS.md")
    assert read_folder_instructions(project, "web") is not None
    for folder in ("node_modules/left-pad", "vendor/other", "linked", "missing", "notes.txt"):
        assert read_folder_instructions(project, folder) is None, folder


def test_the_start_reads_from_the_top_of_the_repository_down_to_the_workspace(project: Path) -> None:
    found = read_project_instructions(project / "web" / "api")
    assert found.files == ("../../AGENTS.md", "../AGENTS.md", "CLAUDE.md")
    assert found.text.index("Use tabs.") < found.text.index("Use two spaces.") < found.text.index("Routes")


def test_a_folder_above_that_is_somebody_elses_says_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: project.stat().st_uid + 1)
    assert read_project_instructions(project / "web" / "api").files == ("CLAUDE.md",)


async def test_a_file_with_words_of_a_stranger_is_not_given_as_instructions(
    home: Path, project: Path
) -> None:
    digest = digest_bytes((project / "web" / "AGENTS.md").read_bytes())
    SharedFileLabels(home / "file-labels.jsonl").add(digest, "stranger")
    model = HearingModel(READ, "Done.")
    async with open_session(home=home, workspace=project, model=model) as session:
        await session.send("look")
    assert _given(session) == ["web/api/CLAUDE.md"]


async def test_the_model_has_at_most_so_many_of_them(home: Path, project: Path) -> None:
    folders = [f"part{number}" for number in range(MAX_FILES + 3)]
    for folder in folders:
        (project / folder).mkdir()
        (project / folder / "AGENTS.md").write_text(folder)
    model = HearingModel(*(use("world__read", {"path": f"{each}/x"}) for each in folders), "Done.")
    async with open_session(home=home, workspace=project, model=model) as session:
        await session.send("look")
    assert len(model.heard[-1]) == MAX_FILES
