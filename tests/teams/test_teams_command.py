"""The command for people: a roster is begun, checked and asked."""

import json
from pathlib import Path

import pytest

from holdfast.cli import main

ROSTER = (
    "teams:\n  a: {project: HERE, member: scripted}\n  b: {project: HERE, member: scripted, asked_by: [a]}\n"
)


def test_a_roster_is_begun_checked_and_its_teams_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    assert main(["teams", "init"]) == 0
    assert main(["teams", "check"]) == 0
    assert main(["teams", "init"]) == 2
    (tmp_path / "home" / "teams.yaml").write_text(ROSTER.replace("HERE", str(tmp_path)))
    capsys.readouterr()
    assert main(["teams", "ask", "a", "hello"]) == 0
    assert capsys.readouterr().out == "echo[1]: hello\n"
    assert main(["teams", "ask", "b", "hello"]) == 1
    assert "external may not ask b" in capsys.readouterr().err
    assert main(["teams", "ask", "b", "hello", "--from", "a", "--thread", "t"]) == 0
    capsys.readouterr()
    assert main(["teams", "status", "--json"]) == 0
    assert {line["description"] for line in json.loads(capsys.readouterr().out)} == {
        "external -> a",
        "a -> b #t",
    }
