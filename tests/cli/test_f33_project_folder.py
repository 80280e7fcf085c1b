"""Bare `holdfast` works in the project it was started in, says where and how, and reads the project's instructions."""

import json
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.cli.commands import holdfast
from tests.cli.terminals import EDITING, terminal

from holdfast import open as open_session
from holdfast.agent.project_instructions import MAX_BYTES, read_project_instructions
from holdfast.cli.chat.welcome import git_branch
from holdfast.models import OnPiece, Prompt, Reply, ScriptedModel, use
from holdfast.world import TrustedFolders


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository below the home folder, and a scripted model beside it."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("Use tabs.\n")
    subprocess.run(["git", "init", "-q", "-b", "fix/totals", str(folder)], check=True)
    (tmp_path / "script.json").write_text(json.dumps(["Done."]))
    return folder


def options(tmp_path: Path) -> tuple[str, ...]:
    return ("-m", f"scripted:{tmp_path / 'script.json'}")


def in_folder(folder: Path, tmp_path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command there, as a person whose home is `tmp_path`."""
    return holdfast(*words, home=folder, HOME=str(tmp_path), HOLDFAST_HOME=str(tmp_path / "holdfast"))


def workspace(tmp_path: Path) -> str:
    """The folder that the only session works in."""
    [session] = json.loads(in_folder(tmp_path, tmp_path, "sessions", "--json").stdout)
    return str(session.get("workspace", ""))


def test_f33_a_task_works_in_the_current_folder(tmp_path: Path, project: Path) -> None:
    done = in_folder(project, tmp_path, *options(tmp_path), "--trust", "look around")
    assert done.returncode == 0, done.stderr
    assert workspace(tmp_path) == str(project)


def test_f33_a_folder_that_is_not_trusted_is_refused_with_both_ways_out(
    tmp_path: Path, project: Path
) -> None:
    done = in_folder(project, tmp_path, *options(tmp_path), "look around")
    assert done.returncode == 2
    assert "--trust" in done.stderr
    assert "--scratch" in done.stderr
    assert in_folder(project, tmp_path, *options(tmp_path), "--scratch", "look around").returncode == 0
    assert workspace(tmp_path) != str(project)


def test_f33_in_the_home_folder_a_session_gets_a_folder_of_its_own(tmp_path: Path, project: Path) -> None:
    done = in_folder(tmp_path, tmp_path, *options(tmp_path), "look around")
    assert done.returncode == 0
    assert workspace(tmp_path) != str(tmp_path)


def test_scratch_and_a_folder_exclude_each_other(tmp_path: Path, project: Path) -> None:
    done = in_folder(tmp_path, tmp_path, "--scratch", "-w", str(project), "x")
    assert "-w and --scratch cannot be combined" in done.stderr


def test_f33_the_chat_says_folder_branch_policy_model_and_sandbox_in_one_line(
    tmp_path: Path, project: Path
) -> None:
    with terminal(*options(tmp_path), "--trust", "-w", "shop", home=tmp_path) as user:
        assert user.wait_for("~/shop (fix/totals) · policy project")
        assert user.wait_for("scripted:")
        assert user.wait_for("python sandbox")
        assert user.wait_for("instructions: AGENTS.md")
        assert user.wait_for("/help")
        assert user.end("\x04") == 0


def test_the_instructions_of_a_project_are_two_files(tmp_path: Path, project: Path) -> None:
    (project / ".holdfast").mkdir()
    (project / ".holdfast" / "instructions.md").write_text("Never touch vendor/.\n")
    found = read_project_instructions(project)
    assert found.files == ("AGENTS.md", ".holdfast/instructions.md")
    assert "Use tabs." in found.text
    assert "Never touch vendor/." in found.text


def test_claude_md_is_read_where_there_is_no_agents_md(project: Path) -> None:
    (project / "CLAUDE.md").write_text("Second.")
    assert read_project_instructions(project).files == ("AGENTS.md",)
    (project / "AGENTS.md").unlink()
    assert read_project_instructions(project).files == ("CLAUDE.md",)


def test_instructions_outside_the_project_are_not_followed(tmp_path: Path, project: Path) -> None:
    (tmp_path / "secret").write_text("SECRET")
    (project / "AGENTS.md").unlink()
    (project / "AGENTS.md").symlink_to(tmp_path / "secret")
    assert read_project_instructions(project).text == ""


def test_long_and_odd_instructions_are_bounded(project: Path) -> None:
    (project / "AGENTS.md").write_bytes(b"\xff" * (MAX_BYTES + 100))
    text = read_project_instructions(project).text
    assert len(text) < MAX_BYTES + 500
    assert "is left out" in text


def test_the_branch_is_read_in_a_repository_a_worktree_and_elsewhere(tmp_path: Path, project: Path) -> None:
    assert git_branch(project) == "fix/totals"
    (project / "web").mkdir()
    assert git_branch(project / "web") == "fix/totals"
    assert git_branch(tmp_path) == ""
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree")], check=True)
    assert git_branch(tmp_path / "tree") == "other"
    subprocess.run([*git, "checkout", "-q", "--detach"], check=True)
    assert len(git_branch(project)) == 8


class HearingModel(ScriptedModel):
    """Keeps the system prompt of the last request."""

    heard = ""

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        self.heard = prompt.system
        return await super().ask(prompt, on_piece)


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_the_model_is_given_the_instructions_of_a_trusted_folder_only(
    tmp_path: Path, project: Path, is_trusted: bool
) -> None:
    home = tmp_path / "holdfast"
    home.mkdir(mode=0o700)
    if is_trusted:
        TrustedFolders(home / "trusted-folders.json").add(project)
    model = HearingModel(["Done."])
    async with open_session(workspace=project, home=home, model=model) as session:
        await session.send("look")
        assert session.instruction_files == (("AGENTS.md",) if is_trusted else ())
    assert ("Use tabs." in model.heard) is is_trusted


def test_the_chat_names_the_instructions_of_a_folder_when_the_agent_works_there(
    tmp_path: Path, project: Path
) -> None:
    (project / "web").mkdir()
    (project / "web" / "CLAUDE.md").write_text("Use two spaces.\n")
    script = [use("world__list", {"pattern": "web/*"}), "Done."]
    (tmp_path / "script.json").write_bytes(msgspec.json.encode(script))
    with terminal(*options(tmp_path), "-w", "shop/web", home=tmp_path) as user:
        assert user.wait_for("instructions in them and in ../AGENTS.md.")
        assert user.wait_for("[y/N] ")
        user.type("n\r")
        assert user.end() == 3
    with terminal(*options(tmp_path), "--trust", "-w", "shop", home=tmp_path) as user:
        assert user.wait_for(EDITING)
        user.type("list\r")
        assert user.wait_for("follows web/CLAUDE.md, the instructions for its folder")
        assert user.wait_for("Done.")
        assert user.end("\x04") == 0
