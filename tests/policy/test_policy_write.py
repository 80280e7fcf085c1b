"""`holdfast policy write`: a draft over HTTP, checked without trust."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.provider_stub import StubServer

from holdfast.cli import main
from holdfast.policy import load_policy

RULES = """- name: run-tests
  allow: [shell.run]
  commands: [pytest]
  because: tests may run
  examples:
    matches: [{shell.run: {argv: [pytest, -q]}}]
    misses: [{shell.run: {argv: [make]}}]
"""
INTENTS = [{"verdict": "allow", "operations": ["shell.run"], "means": "tests may run"}]

WRITES = {
    "verdict": "stage",
    "operations": ["world.*"],
    "only": {"paths": ["src/**"]},
    "means": "edits in src",
}
EDITS = """- name: edits
  stage: [world.write]
  paths: [src/app/*.py]
  examples:
    matches: [{world.write: {path: src/app/a.py, content: x}}]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


async def written(answer: object, *words: str) -> int:
    reply = answer if isinstance(answer, str) else json.dumps(answer)
    async with StubServer([reply], key="none") as server:
        model = f"server:{server.url}/v1#stub-model"
        return await asyncio.to_thread(
            main, ["policy", "write", "tests may run", "--policy", "ask-always", "-m", model, *words]
        )


async def test_a_draft_is_shown_with_lint_and_backtest_and_not_saved(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    assert await written({"intents": INTENTS, "rules": RULES}, "--json") == 0
    report: Any = json.loads(capsys.readouterr().out)
    assert report["intents"][0]["means"] == "tests may run"
    assert report["backtest"]["calls"] == 0
    assert {each["operation"] for each in report["diff"]["changed"]} == {"shell.run"}
    assert not (home / "policies").exists() or not list((home / "policies").iterdir())


async def test_a_confirmed_draft_is_saved_as_a_policy_that_loads(home: Path) -> None:
    assert await written({"intents": INTENTS, "rules": RULES}, "--save", "mine", "--yes") == 0
    mine = load_policy("mine", search=(home / "policies",))
    assert [rule.name for rule in mine.document.rules][:1] == ["run-tests"]


async def test_a_draft_within_the_paths_of_an_intent_is_accepted_and_the_paths_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await written({"intents": [WRITES], "rules": EDITS}) == 0
    assert '  stage    world.* only paths ["src/**"]: edits in src' in capsys.readouterr().out


async def test_nothing_is_saved_where_nobody_confirms(home: Path) -> None:
    assert await written({"intents": INTENTS, "rules": RULES}, "--save", "mine") == 2
    assert not (home / "policies" / "mine.yaml").exists()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (
            {"intents": INTENTS, "rules": RULES.replace("shell.run]", "shell.run, world.write]")},
            "than a confirmed intent covers",
        ),
        (
            {"intents": INTENTS, "rules": RULES.replace("[shell.run]", '["*"]')},
            "than a confirmed intent covers",
        ),
        ({"intents": INTENTS, "rules": RULES.replace("run-tests", "ask")}, "would replace a rule"),
        ({"intents": INTENTS, "rules": RULES.replace("[pytest]", "[make]")}, "does not match"),
        ({"intents": INTENTS, "rules": RULES.replace("commands", "comands")}, "has no field 'comands'"),
        ({"intents": [], "rules": RULES}, "than a confirmed intent covers"),
        (
            {"intents": [{**INTENTS[0], "only": {"commands": ["make"]}}], "rules": RULES},
            "than a confirmed intent covers",
        ),
        ({"intents": [{**INTENTS[0], "verdict": "stage"}], "rules": RULES}, "than a confirmed intent covers"),
        ({"intents": [{**INTENTS[0], "only": {"wishes": ["all"]}}], "rules": RULES}, "has no field 'wishes'"),
        (
            {"intents": [WRITES], "rules": EDITS.replace("src/app/*.py", "lib/*.py")},
            "than a confirmed intent covers",
        ),
        (
            {"intents": [WRITES], "rules": EDITS.replace("src/app/*.py", "src/.env")},
            "than a confirmed intent covers",
        ),
        (
            {"intents": [WRITES], "rules": EDITS.replace("paths: [src/app/*.py]", "inside: true")},
            "than a confirmed intent covers",
        ),
        (
            {"intents": [WRITES], "rules": EDITS.replace("  paths: [src/app/*.py]\n", "")},
            "than a confirmed intent covers",
        ),
        ("I cannot do that.", "is not a draft"),
        ({"intents": INTENTS, "rules": "[]\ntrusted: [world]"}, "draft"),
    ],
)
async def test_a_draft_that_goes_too_far_or_is_wrong_is_refused(
    answer: object, problem: str, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    assert await written(answer, "--save", "mine", "--yes") != 0
    assert problem in capsys.readouterr().err
    assert not (home / "policies" / "mine.yaml").exists()
