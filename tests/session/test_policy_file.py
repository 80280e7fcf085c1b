"""The policy of a session is closed to its guest, also where it is a file in the workspace."""

import json
import os
from pathlib import Path

import pytest
from tests.cli.commands import Run, run

from holdfast.policy import policy_files
from holdfast.world import WorldPaths

__all__ = ["run"]

POLICY = """\
policy: open
rules:
  - {name: files, allow: "world.*", inside: true}
  - {name: listing, allow: "world.*"}
"""
ATTEMPTS = (
    "world.write(path='rules/own.yaml', content='x')",
    "world.delete(path='rules/own.yaml')",
    "world.move(source='other.yaml', destination='rules/own.yaml')",
    "world.move(source='rules', destination='elsewhere')",
    "world.delete(path='rules')",
    "with open('rules/own.yaml', 'a') as file: file.write('x')",
    "world.write(path='link.yaml', content='x')",
    "world.write(path='rules/./own.yaml', content='x')",
    "world.write(path='/workspace/rules/own.yaml', content='x')",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose policy lies in it, beside other files."""
    (tmp_path / "project" / "rules").mkdir(parents=True)
    project = tmp_path / "project"
    (project / "rules" / "own.yaml").write_text(POLICY)
    (project / "other.yaml").write_text("policy: other\n")
    os.symlink("rules/own.yaml", project / "link.yaml")
    return project


@pytest.mark.promise("P03")
def test_a_guest_can_not_change_the_policy_that_judges_it(run: Run, folder: Path, tmp_path: Path) -> None:
    tried = [f"try:\n    {each}\n    made.append({each!r})\nexcept Exception:\n    pass" for each in ATTEMPTS]
    allowed = "world.write(path='rules/new.yaml', content='x')\nworld.list(pattern='*')"
    (tmp_path / "code.py").write_text("\n".join(["made = []", *tried, allowed, "made"]))
    policy = folder / "rules" / "own.yaml"
    done = run("exec", "-w", str(folder), "--trust", "-p", str(policy), "--json", "code.py")
    assert json.loads(done.out)["outcome"]["value"] == []
    assert policy.read_text() == POLICY
    assert (folder / "rules" / "new.yaml").exists(), "the folder of the policy stays open"


def test_policy_check_says_the_same(run: Run, folder: Path) -> None:
    call = json.dumps({"operation": "world.write", "arguments": {"path": "rules/own.yaml", "content": "x"}})
    words = ("--policy", str(folder / "rules" / "own.yaml"), "--workspace", str(folder), "--call", call)
    done = run("policy", "check", *words, "--json")
    assert json.loads(done.out)["rule"] == "structural-protected-path"


def test_the_files_beside_a_compiled_policy_are_closed_too(tmp_path: Path) -> None:
    policy = tmp_path / "compiled-policy.json"
    closed = policy_files(str(policy))
    assert {each.name for each in closed} == {
        "compiled-policy.json",
        "tool-annotations.json",
        "dynamic-lists.json",
    }
    paths = WorldPaths(tmp_path, closed_files=closed)
    assert paths.locate("dynamic-lists.json").protected is not None
    assert paths.locate("other.json").protected is None
    assert policy_files("project") == ()
