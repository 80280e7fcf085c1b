"""The guides: every command of the Claude Code guide runs, in order, in one project."""

import json
import re
import shlex
from pathlib import Path

from tests.mcp.project import Project

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "use-with-claude-code.md").read_text()


def commands() -> list[str]:
    """Every line of a shell block."""
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE, re.S)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


def test_every_command_of_the_guide_does_what_it_says(tmp_path: Path) -> None:
    project = Project(tmp_path)
    codes: dict[str, int] = {}
    written = project.folder / ".mcp.json"
    for line in commands():
        stdin, words = "", shlex.split(line)
        if words[0] == "claude":
            continue  # test_mcp_claude_code runs the real program
        if words[0] == "echo":
            stdin, words = words[1], words[words.index("|") + 1 :]
        assert words.pop(0) == "holdfast"
        codes[line] = project.run(*words, stdin=stdin).returncode
        if line == "holdfast install claude":
            assert "proxy" in written.read_text()
    assert [line for line, code in codes.items() if code] == [
        "holdfast approve"
    ]  # nothing waits for approval
    assert list(project.folder.iterdir()) == []  # --remove deleted everything


def test_the_policy_decides_each_tool_as_the_guide_says(tmp_path: Path) -> None:
    project = Project(tmp_path)
    said = {
        "Read": ({"file_path": str(project.folder / "a.txt")}, "allow"),
        "Grep": ({"pattern": "x"}, "allow"),
        "Glob": ({"pattern": "*.py"}, "allow"),
        "Write": ({"file_path": str(project.folder / "a.txt"), "content": "x"}, "ask"),
        "Edit": ({"file_path": str(project.folder / "a.txt"), "old_string": "a", "new_string": "b"}, "ask"),
        "Bash": ({"command": "ls"}, "ask"),
        "mcp__elsewhere__read": ({}, "deny"),
    }
    for tool, (given, decision) in said.items():
        asked = {"session_id": "s", "cwd": str(project.folder), "tool_name": tool, "tool_input": given}
        done = project.run("hook", "claude", stdin=json.dumps(asked))
        answer = json.loads(done.stdout)["hookSpecificOutput"]
        assert (tool, answer["permissionDecision"]) == (tool, decision)


def test_the_configuration_in_the_guide_is_json() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", GUIDE, re.S)
    assert json.loads(block)["mcpServers"]["holdfast"]["args"] == ["proxy", "--permission-prompt"]
