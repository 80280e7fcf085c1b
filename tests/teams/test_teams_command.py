"""The command `holdfast teams`: create, edit and check a roster, ask teams, show messages and usage."""

import asyncio
import json
import os
import sqlite3
import sys
from pathlib import Path

import pytest
from tests.support.fork_server import forked_python
from tests.support.http_standin import http_standin
from tests.teams import acp_agent

from holdfast.cli import main
from holdfast.commands import probe_sandbox

ROSTER = (
    "teams:\n  a: {project: HERE, member: scripted}\n  b: {project: HERE, member: scripted, asked_by: [a]}\n"
)


@pytest.fixture
def roster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    assert main(["teams", "init"]) == 0
    capsys.readouterr()
    return tmp_path / "home" / "teams.yaml"


def test_a_roster_is_created_and_checked_and_its_teams_are_asked(
    tmp_path: Path, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["teams", "check"]) == 0
    assert main(["teams", "init"]) == 2
    roster.write_text(ROSTER.replace("HERE", str(tmp_path / "project")))
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


def test_a_policy_that_cannot_be_opened_is_reported_with_its_position(
    tmp_path: Path, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roster.write_text(f"teams:\n  a:\n    project: {tmp_path}/project\n    policy: nosuch\n")
    assert main(["teams", "check"]) == 2
    assert f"{roster}:4:13: " in (said := capsys.readouterr().err)
    assert "nosuch" in said
    roster.write_text(f"teams:\n  a:\n    project: {tmp_path}/project\n    policy: safe-edit\n")
    assert main(["teams", "check"]) == 0


@pytest.mark.parametrize("seconds", ["0", "-3", "nan"])
def test_a_wait_of_zero_seconds_is_refused_before_the_team_is_asked(
    tmp_path: Path, roster: Path, capsys: pytest.CaptureFixture[str], seconds: str
) -> None:
    roster.write_text(ROSTER.replace("HERE", str(tmp_path / "project")))
    assert main(["teams", "ask", "a", "hello", "--seconds", seconds]) == 2
    assert "--seconds must be more than 0" in capsys.readouterr().err
    assert main(["teams", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("/", "is or contains"),
        ("/etc", "is a system folder"),
        ("/usr/lib", "is a system folder"),
        ("HERE", "is or contains Holdfast's data directory"),
        ("HERE/home", "is or contains Holdfast's data directory"),
        ("HERE/home/sessions", "is inside Holdfast's data directory"),
        ("HERE/root", "is or contains"),
    ],
)
def test_f27_a_project_follows_the_folder_rules_of_a_session(
    tmp_path: Path, roster: Path, capsys: pytest.CaptureFixture[str], folder: str, words: str
) -> None:
    folder = folder.replace("HERE", str(tmp_path))
    (tmp_path / "root").symlink_to("/")
    (tmp_path / "home" / "sessions").mkdir(exist_ok=True)
    assert main(["teams", "add", "a", folder, "--member", "scripted"]) == 2
    assert words in capsys.readouterr().err
    roster.write_text(f"teams:\n  a: {{project: {folder}, member: scripted}}\n")
    for command in (["check"], ["list"], ["ask", "a", "hi"], ["serve"]):
        assert main(["teams", *command]) == 2
        assert f"{roster}:2:16: " in (said := capsys.readouterr().err)
        assert words in said


def test_adding_and_removing_teams_keeps_the_rest_of_the_file(
    tmp_path: Path, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roster.write_text(
        f"teams:\n  # the first\n  a:\n    project: {tmp_path}/project  # here\n\n# settings below\nsettings: {{}}\n"
    )
    before = roster.read_text()
    assert (
        main(["teams", "add", "b", str(tmp_path / "project"), "--member", "scripted", "--asked-by", "a"]) == 0
    )
    assert main(["teams", "add", "b", str(tmp_path / "project")]) == 2
    assert main(["teams", "add", "c", str(tmp_path / "missing")]) == 2
    assert main(["teams", "add", "c/d", str(tmp_path / "project")]) == 2
    assert "# the first" in roster.read_text()
    capsys.readouterr()
    assert main(["teams", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["teams"]
    assert (listed["b"]["member"], listed["b"]["asked_by"]) == ("scripted", ["a"])
    assert main(["teams", "remove", "a"]) == 2  # `asked_by` of b allows it
    assert main(["teams", "remove", "b"]) == 0
    assert main(["teams", "remove", "b"]) == 1
    assert roster.read_text() == before


@pytest.mark.parametrize(
    "text",
    [
        "teams: {}\n",
        "teams:\n",
        "settings: {max_hops: 3}\nteams: {}  # none yet\n",
        'teams: {x: {project: "HERE"}}\n',
        "teams:\n    x:\n        project: HERE\n",
        "teams:\n  x:\n    project: HERE",
    ],
)
def test_a_team_can_be_added_and_removed_in_every_layout(
    tmp_path: Path, roster: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    roster.write_text(text.replace("HERE", str(tmp_path / "project")))
    assert main(["teams", "add", "yes", str(tmp_path / "project")]) == 0
    assert main(["teams", "add", "b", str(tmp_path / "project")]) == 0
    capsys.readouterr()
    assert main(["teams", "list", "--json"]) == 0
    assert {"yes", "b"} <= set(json.loads(capsys.readouterr().out)["teams"])
    assert main(["teams", "remove", "yes"]) == 0
    assert main(["teams", "remove", "b"]) == 0
    assert main(["teams", "check"]) == 0


def test_the_legacy_teams_json_is_edited_as_json(tmp_path: Path, roster: Path) -> None:
    path = tmp_path / "teams.json"
    path.write_text('{\n\t"settings": {"maxProcesses": 3},\n\t"teams": {}\n}\n')
    for name in ("a", "b"):
        assert main(["teams", "--file", str(path), "add", name, str(tmp_path / "project")]) == 0
    assert set(json.loads(path.read_text())["teams"]) == {"a", "b"}
    assert main(["teams", "--file", str(path), "remove", "a"]) == 0
    assert main(["teams", "--file", str(path), "remove", "b"]) == 0
    assert json.loads(path.read_text()) == {"settings": {"maxProcesses": 3}, "teams": {}}


def test_messages_and_usage_are_shown(
    tmp_path: Path, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roster.write_text(ROSTER.replace("HERE", str(tmp_path / "project")))
    for text in ("one", "two", "three"):
        main(["teams", "ask", "b", text, "--from", "a"])
    main(["teams", "ask", "a", "a\x1b[2Jb"])
    capsys.readouterr()
    assert main(["teams", "log", "b", "--limit", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(line["text"], line["answer"], line["pair"]) for line in said] == [
        ("two", "echo[1]: two", "a -> b"),
        ("three", "echo[1]: three", "a -> b"),
    ]
    assert main(["teams", "log"]) == 0
    shown = capsys.readouterr().out
    assert "external -> a" in shown
    assert "\x1b" not in shown
    assert main(["teams", "log", "--from", "a", "--thread", "none"]) == 0
    assert capsys.readouterr() == ("", "no messages match\n")
    assert main(["teams", "usage", "--json"]) == 0
    usage = json.loads(capsys.readouterr().out)
    assert (usage["messages"], usage["failed"], usage["messages_a_pair"]) == (4, 0, 2.0)
    assert usage["lifetimes"] == {"hour": 2, "day": 0, "week": 0, "month": 0, "longer": 0}
    assert usage["tokens_a_pair"] == usage["tokens"] / 2
    lifetimes = [each["lifetime_seconds"] for each in usage["pairs"]]
    assert usage["median_lifetime_seconds"] == pytest.approx(sum(lifetimes) / 2)
    assert sum(lifetimes) > 0
    busiest = usage["pairs"][0]
    assert busiest["lifetime_seconds"] >= 0
    assert (busiest["pair"], busiest["messages"]) == ("a -> b", 3)
    assert busiest["tokens"] > 0
    assert busiest["median_seconds"] is not None
    assert main(["teams", "usage"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split()[:2] == ["messages", "failed"]
    assert table[1].split()[0] == "3"
    assert table[1].endswith("  a -> b")
    assert table[-2].endswith("  2 pairs, 2 messages each")
    assert table[-1].endswith("tokens a pair; lifetimes: 2 within an hour")
    assert main(["teams", "status"]) == 0
    pairs = capsys.readouterr().out.splitlines()
    assert [line for line in (*table, *pairs) if len(line) > 80] == []
    assert main(["show", pairs[0].split()[0]]) == 0


def test_the_log_of_a_damaged_pair_reports_only_the_damage(
    tmp_path: Path, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roster.write_text(ROSTER.replace("HERE", str(tmp_path / "project")))
    main(["teams", "ask", "a", "hello"])
    with sqlite3.connect(tmp_path / "home" / "holdfast.db") as connection:
        connection.execute("delete from event where seq = 2")
    connection.close()
    capsys.readouterr()
    assert main(["teams", "log"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("note: external -> a: ")
    assert "no messages yet" not in err


def test_f31_status_and_log_show_that_a_conversation_was_summarised(
    tmp_path: Path, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roster.write_text(
        "settings: {compact_tokens: 1000}\nteams:\n  a:\n"
        f"    project: {tmp_path}/project\n    member: acp\n    gate: asks\n    program: {sys.executable}\n"
        f"    arguments: [{acp_agent.__file__}, --long]\n"
    )
    assert main(["teams", "ask", "a", "long " * 300]) == 0
    capsys.readouterr()
    assert main(["teams", "status"]) == 0
    assert "summarised" not in capsys.readouterr().out
    assert main(["teams", "ask", "a", "briefing"]) == 0
    assert capsys.readouterr().out.startswith("Summary of what was said before: they said long long")
    assert main(["teams", "status"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("external -> a (summarised)")
    assert main(["teams", "log"]) == 0
    assert "-- the conversation so far was summarised; its messages stay on record" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["teams", "usage", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"][0]["summaries"] == 1


async def test_a_call_of_an_external_member_that_waits_is_notified(tmp_path: Path, roster: Path) -> None:
    policy = tmp_path / "asking.yaml"
    policy.write_text(
        "policy: asking\nrules:\n  - {name: ask, escalate: acp.edit}\n  - {name: rest, allow: '*'}\n"
    )
    roster.write_text(
        f"settings: {{approval_seconds: 600}}\nteams:\n  a:\n    project: {tmp_path}/project\n    policy: {policy}\n"
        f"    member: acp\n    gate: asks\n    program: {sys.executable}\n    arguments: [{acp_agent.__file__}]\n"
    )
    async with http_standin() as server:
        (roster.parent / "config.toml").write_text(
            f'[notify.targets.hook]\nkind = "webhook"\nurl = "{server.url}"\nafter_seconds = 0\ntopics = ["waits"]\n'
        )
        asking = await asyncio.create_subprocess_exec(
            *forked_python("-m", "holdfast", "teams", "ask", "a", "use edit b.txt"), env=os.environ
        )
        try:
            [request] = await server.received(1)
        finally:
            asking.terminate()
            await asking.wait()
    assert json.loads(request.body)["text"].startswith("1 call waits for your approval")


def test_a_team_runs_programs_and_their_changes_wait_for_a_person(
    tmp_path: Path, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if asyncio.run(probe_sandbox(tmp_path / "probe")).tier != "full":
        pytest.skip("the full sandbox does not stand here")
    code = "shell.run(script='echo built > out.txt && cat out.txt')['output']"
    replies = tmp_path / "replies.json"
    call = {"kind": "tool-call", "id": "1", "tool": "execute_code", "arguments": {"code": code}}
    reply = {"message": {"role": "model", "parts": [call]}, "usage": {}, "finish": "tool-calls"}
    replies.write_text(json.dumps([reply, "It is built."]))
    project = tmp_path / "project"
    roster.write_text(f"teams:\n  a: {{project: {project}, member: holdfast, model: 'scripted:{replies}'}}\n")
    assert main(["teams", "ask", "a", "build it"]) == 0
    assert capsys.readouterr().out == "It is built.\n"
    assert not (project / "out.txt").exists()
    assert main(["proposals", "show"]) == 0
    assert "+built" in capsys.readouterr().out
