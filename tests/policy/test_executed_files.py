"""Files that other programs run or trust: a table with sources, a path test for policies, and a mark in each diff."""

import json
import re
from pathlib import Path

import pytest
from tests.cli.commands import Run, run

from holdfast.cli.views.diff_lines import diff_lines
from holdfast.core import Call, call_id
from holdfast.core.executed_files import EXECUTED_FILES, runs_when
from holdfast.core.globs import glob_problem
from holdfast.policy import KNOWN_TOOLS, LexicalPaths, Request, RulePolicy, targets_of
from holdfast.policy.parser import parse_policy
from holdfast.world import MemoryWorld, StagedWorld

__all__ = ["run"]
ROOT = Path(__file__).parents[2]
CAREFUL = """\
policy: careful
rules:
  - name: what-runs
    escalate: world.write
    roles: [write-path]
    executes: true
    because: another program runs it
  - name: edits
    stage: world.write
    inside: true
    because: you commit them
"""


def test_every_line_of_the_table_has_a_pattern_a_reason_and_a_source() -> None:
    assert len({each.pattern for each in EXECUTED_FILES}) == len(EXECUTED_FILES)
    for each in EXECUTED_FILES:
        assert glob_problem(each.pattern) is None, each
        assert each.when
        assert (
            re.fullmatch(r"https://\S+|[\w.-]+\([1578]\)", each.source) or (ROOT / each.source).is_file()
        ), each


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml", "sub/.github/workflows/x/y.yml", ".envrc", ".vscode/tasks.json", ".idea/workspace.xml",
        "Makefile", "makefile", "a/b/conftest.py", "setup.py", "pyproject.toml", "package.json", ".npmrc",
        ".pre-commit-config.yaml", ".bashrc", ".holdfast/policy.yaml", "CLAUDE.md", "AGENTS.md", ".git/hooks/pre-commit",
        ".husky/pre-commit", "vite.config.ts", "Dockerfile", ".gitlab-ci.yml", "/home/me/project/Makefile",
        ".lefthook.json", ".config/lefthook.toml", "lefthook-local.yml", "Taskfile.dist.yaml", "compose.override.yaml",
        "pytest.toml", ".pytest.ini", ".pnpmfile.mjs", ".yarn/releases/yarn.cjs", ".nvimrc", "app-gdb.py",
        ".github/instructions/x.instructions.md", ".gemini/settings.json", ".justfile",
        "gradle/wrapper/gradle-wrapper.properties", "gradlew", "configure.ac", ".cursor/hooks.json",
    ],
)  # fmt: skip
def test_known_files_run(path: str) -> None:
    assert runs_when(path)


@pytest.mark.parametrize(
    "path", ["notes.txt", "src/main.py", "Makefile.md", "docs/setup.py.txt", "package.json5", "."]
)
def test_other_files_do_not(path: str) -> None:
    assert runs_when(path) is None


@pytest.mark.parametrize(
    ("path", "verdict"), [("Makefile", "escalate"), ("a/.ENVRC", "escalate"), ("notes.txt", "stage")]
)
def test_a_rule_can_name_the_whole_set(path: str, verdict: str) -> None:
    policy = RulePolicy(parse_policy(CAREFUL, source="test"))
    tool, arguments = KNOWN_TOOLS["world.write"], {"path": path, "content": "x"}
    call = Call(id=call_id(1, 1), operation="world.write", arguments=dict(arguments))
    targets = targets_of(tool, call.arguments, LexicalPaths())
    assert policy.judge(Request(call=call, tool=tool, targets=targets)).verdict == verdict


@pytest.mark.parametrize("verb", ["deny", "escalate", "stage", "allow"])
def test_the_set_of_a_rule_is_what_is_marked_whatever_the_rule_does(verb: str) -> None:
    document = CAREFUL.replace("escalate: world.write", f"{verb}: world.write")
    policy = RulePolicy(parse_policy(document, source="test"))
    tool = KNOWN_TOOLS["world.write"]
    for each in EXECUTED_FILES:
        if each.pattern == "**/.git":
            continue
        named = each.pattern.removeprefix("**/").replace("[cm]", "c").replace("*", "x")
        for path in (named, f"a/{named}", f"{named}/in/it"):
            assert runs_when(path)
            call = Call(id=call_id(1, 1), operation="world.write", arguments={"path": path, "content": "x"})
            targets = targets_of(tool, call.arguments, LexicalPaths())
            assert policy.judge(Request(call=call, tool=tool, targets=targets)).rule == "what-runs", path


def test_a_proposal_says_when_its_file_runs() -> None:
    world = StagedWorld(MemoryWorld())
    world.write("Makefile", b"all:\n\techo\n")
    world.write("notes.txt", b"x\n")
    makefile, notes = world.proposals()
    first = next(diff_lines(makefile))
    assert (first.kind, first.text) == ("note", "Makefile: this runs when you run make")
    assert not any("this runs" in line.text for line in diff_lines(notes))
    assert (makefile.runs_when, notes.runs_when) == ("run make", None)


@pytest.mark.promise("P12")
def test_every_output_says_when_a_file_runs(tmp_path: Path, run: Run) -> None:
    """The diff of a proposal, the question about a write, and the JSON of both."""
    (tmp_path / "work").mkdir()
    (tmp_path / "careful.yaml").write_text(CAREFUL)
    (tmp_path / "staged.yaml").write_text(CAREFUL.replace("escalate:", "stage:", 1))
    (tmp_path / "code.py").write_text("world.write(path='.lefthook.json', content='{}')")
    expected = "commit or push with git"

    shown = json.loads(run("exec", "code.py", "-w", "work", "--trust", "-p", "staged.yaml", "--json").out)
    assert [each["runs_when"] for each in shown["proposals"]] == [expected]
    assert f".lefthook.json: this runs when you {expected}" in run("proposals", "show").out
    assert json.loads(run("proposals", "show", "--json").out)[0]["runs_when"] == expected

    run("exec", "code.py", "-w", "work", "-p", "careful.yaml")
    assert f"(this runs when you {expected})" in " ".join(run("waiting").out.split())
    [waiting] = json.loads(run("waiting", "--json").out)
    assert waiting["runs_when"] == [expected]
