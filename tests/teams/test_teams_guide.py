"""The examples of the guide on teams work as printed."""

import json
import re
from pathlib import Path

import pytest

from holdfast.cli import main

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "teams.md"
ROSTER, RULES = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_roster_in_the_guide_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    assert main(["teams", "init"]) == 0
    for folder in ("frontend", "backend"):
        (tmp_path / "app" / folder).mkdir(parents=True)
    written = ROSTER.replace("/srv", str(tmp_path))
    (tmp_path / "home" / "teams.yaml").write_text(written)
    assert main(["teams", "check"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["teams", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["teams"]
    assert {name: team.get("member", "holdfast") for name, team in found.items()} == {
        "frontend": "claude",
        "backend": "holdfast",
        "reviewer": "acp",
    }


def test_the_rules_in_the_guide_are_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    policy = tmp_path / "asking.yaml"
    policy.write_text(f"policy: asking\n{RULES}")
    assert main(["policy", "lint", str(policy)]) == 0, capsys.readouterr().out
