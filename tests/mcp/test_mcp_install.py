"""`holdfast install`: what it writes for each client, and that it removes exactly that."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mcp.project import Project

from holdfast.core.errors import InvalidConfig
from holdfast.mcp import plan
from holdfast.mcp.install.jsonc import JsoncDocument

CLIENTS = {
    "claude": ".mcp.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
}
COMMENTED = """\
{
  // what we use here
  "servers": {
    "old": {"command": "x"}, // the first one
  },
  "inputs": [], /* none yet */
}
"""
HOOKED = """\
{
    "model": "x",
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "my-hook claude"}]}
        ]
    }
}
"""


def apply_plan(home: Path, client: str, **options: Any) -> None:
    """Write what the command would write. The home is also the project, unless another folder is given."""
    given: dict[str, Any] = {"command": ("holdfast",), "folder": home, "home": home, "is_for_user": False}
    for change in plan(client, **given | options).changes:
        path = Path(change.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if change.is_removal:
            path.unlink()
        else:
            path.write_bytes(change.after.encode())


def test_a_dry_run_shows_the_changes_without_writing_them(project: Project) -> None:
    (project.folder / ".mcp.json").write_text('{\n  "mcpServers": {\n    "old": {"command": "x"}\n  }\n}\n')
    dry = project.run("install", "claude", "--dry-run")
    assert '+    "holdfast": {' in dry.stdout
    assert "bypass the gate: old" in dry.stderr
    assert not (project.folder / ".claude").exists()
    assert project.run("install", "claude").returncode == 0
    servers = json.loads((project.folder / ".mcp.json").read_text())["mcpServers"]
    assert list(servers) == ["old", "holdfast"]
    hooks = json.loads((project.folder / ".claude" / "settings.json").read_text())["hooks"]["PreToolUse"]
    assert hooks[0]["hooks"][0]["command"].endswith("hook claude || exit 2")
    assert "it is already installed" in project.run("install", "claude").stderr


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("whose", [[], ["--user"]])
def test_files_that_only_holdfast_wrote_are_removed_with_their_folders(
    project: Project, client: str, whose: list[str], tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert project.run("install", client, *whose).returncode == 0
    assert len(sorted(tmp_path.rglob("*"))) > len(before)
    removed = project.run("install", client, *whose, "--remove")
    assert "removed: " in removed.stderr
    left = [path for path in sorted(tmp_path.rglob("*")) if path not in before]
    assert [path.name for path in left] in ([], [".config", "Code"])
    assert "it is not installed" in project.run("install", client, *whose, "--remove").stderr


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("claude", ".mcp.json", '{"mcpServers": {"old": {"command": "x", "args": [], "env": {}}}}'),
        ("claude", ".mcp.json", '{"mcpServers": {"old": {}},\r\n "more": 1}\r\n'),
        ("claude", ".claude/settings.json", HOOKED),
        ("claude", ".claude/settings.json", '{"permissions": {"allow": ["Read"]}}'),
        ("codex", ".codex/config.toml", 'model = "x"  # mine\n\n[mcp_servers.other]\ncommand = "y"\n'),
        ("cursor", ".cursor/mcp.json", '{ "mcpServers": { "old": { "command": "x" } } }'),
        ("vscode", ".vscode/mcp.json", '{"servers": {"old": {"command": "x"}}, "inputs": []}'),
        ("vscode", ".vscode/mcp.json", COMMENTED),
    ],
)
def test_removal_leaves_the_rest_of_a_file_unchanged(
    tmp_path: Path, client: str, file: str, text: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    apply_plan(tmp_path, client)
    assert b"holdfast" in path.read_bytes()
    apply_plan(tmp_path, client, policy="strict")
    apply_plan(tmp_path, client, is_removal=True)
    assert path.read_bytes() == text.encode()


def test_removal_keeps_hooks_of_others_in_the_same_group(tmp_path: Path) -> None:
    settings = tmp_path / ".claude" / "settings.json"
    apply_plan(tmp_path, "claude")
    document = JsoncDocument(settings.read_text())
    mine = {"type": "command", "command": "mine"}
    settings.write_text(document.append("hooks", "PreToolUse", 0, "hooks", item=mine).text)
    apply_plan(tmp_path, "claude", is_removal=True)
    kept = json.loads(settings.read_text())
    assert kept == {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [mine]}]}}


def test_installing_with_another_policy_replaces_the_entry(tmp_path: Path) -> None:
    apply_plan(tmp_path, "claude")
    apply_plan(tmp_path, "claude", policy="strict")
    (entry,) = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"].values()
    assert entry["args"] == ["proxy", "-p", "strict"]
    hooks = json.loads((tmp_path / ".claude" / "settings.json").read_text())["hooks"]
    events = ("PreToolUse", "UserPromptSubmit", "Stop", "SessionEnd", "Notification")
    assert {event: len(groups) for event, groups in hooks.items()} == dict.fromkeys(events, 1)


def test_the_entry_for_an_editor_has_a_type_and_the_project_folder(tmp_path: Path) -> None:
    for client, key in (("cursor", "mcpServers"), ("vscode", "servers")):
        apply_plan(tmp_path, client)
        entry = json.loads((tmp_path / CLIENTS[client]).read_text())[key]["holdfast"]
        assert entry == {
            "type": "stdio",
            "command": "holdfast",
            "args": ["proxy", "-w", "${workspaceFolder}"],
        }


@pytest.mark.parametrize(
    ("client", "file"),
    [
        ("claude", ".claude.json"),
        ("codex", ".codex/config.toml"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".config/Code/User/mcp.json"),
    ],
)
def test_an_entry_for_all_projects_is_written_to_the_home_folder(
    tmp_path: Path, client: str, file: str
) -> None:
    apply_plan(tmp_path, client, folder=tmp_path / "elsewhere", is_for_user=True)
    assert "proxy" in (tmp_path / file).read_text()
    assert "workspaceFolder" not in (tmp_path / file).read_text()  # there may be no folder open


def test_servers_that_an_editor_reaches_through_another_file_are_reported(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"direct": {"command": "x"}}}')
    planned = plan("vscode", command=("holdfast",), folder=tmp_path, home=tmp_path, is_for_user=False)
    assert planned.bypassing == ("direct",)


def test_a_symbolic_link_to_a_configuration_file_is_kept(project: Project) -> None:
    kept = project.folder / "dotfiles.json"
    kept.write_text('{"mcpServers": {"old": {"command": "x"}}}')
    (project.folder / ".mcp.json").symlink_to(kept)
    assert project.run("install", "claude").returncode == 0
    assert (project.folder / ".mcp.json").is_symlink()
    assert "holdfast" in kept.read_text()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"mcpServers": []}', '{"mcpServers": "x"}', "// mine\n{}", '{"a": 1,}']
)
def test_a_file_that_cannot_be_parsed_is_not_changed(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    with pytest.raises(InvalidConfig):
        plan("claude", command=("holdfast",), folder=tmp_path, home=tmp_path, is_for_user=False)


def test_the_section_for_codex_is_appended(tmp_path: Path) -> None:
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('model = "x"  # mine\n[mcp_servers.other]\ncommand = "y"')
    (change,) = plan("codex", command=("holdfast",), folder=tmp_path, home=tmp_path, is_for_user=True).changes
    assert change.after.startswith(change.before + "\n\n[mcp_servers.holdfast]\n")
    apply_plan(tmp_path, "codex")
    assert (
        plan("codex", command=("holdfast",), folder=tmp_path, home=tmp_path, is_for_user=True).changes == ()
    )


words = st.text(st.sampled_from('abc/*",{}[]: \\\n'), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
layouts = st.sampled_from([None, 1, 2, 4, "\t"])


@given(st.dictionaries(words, values, max_size=4), values, layouts)
def test_a_value_put_into_a_document_can_be_read_and_removed_without_a_trace(
    existing: dict[str, object], value: object, layout: Any
) -> None:
    document = JsoncDocument(json.dumps(existing, indent=layout))
    changed = document.put("ours", "entry", value=value)
    assert changed.value == existing | {"ours": {"entry": value}}
    assert json.loads(changed.text) == changed.value
    assert changed.without("ours", "entry").text == (document.text if existing else "")


@given(st.text(st.sampled_from('{}[]",:/*\n a1'), max_size=20))
def test_any_text_is_a_document_or_is_refused(text: str) -> None:
    try:
        document = JsoncDocument(text)
    except ValueError:
        return
    assert document.put("x", value=1).get("x") == 1
