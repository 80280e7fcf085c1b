"""`holdfast policy`: the decision, the reasons, and the effect of a change, at the command line."""

import asyncio
import contextlib
import json
import random
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from tests.policy.test_ironcurtain_cases import DATA, Ground, cases

from holdfast.cli import main
from holdfast.commands import probe_sandbox
from holdfast.core import (
    PERSON,
    Call,
    Decision,
    Escalation,
    EscalationId,
    FakeClock,
    JsonObject,
    Response,
    Verdict,
    call_id,
)
from holdfast.core.errors import InvalidPolicy
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    EscalationAnswered,
    EscalationOpened,
    Event,
    SessionOpened,
    SessionReconfigured,
    SessionRewound,
)
from holdfast.policy import KNOWN_TOOLS, LexicalPaths, Request, RulePolicy, load_policy, targets_of
from holdfast.store import Home, open_store


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    assert main(["policy", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_check_prints_the_decision(capsys: pytest.CaptureFixture[str]) -> None:
    call = '{"operation": "world.write", "arguments": {"path": "/etc/hosts", "content": "x"}}'
    report = said(capsys, "check", "--policy", "project", "--call", call)
    assert report["decision"] == "deny"
    assert report["rule"] == "no-changes-outside"
    assert report["source"].startswith("project:")
    assert "instead" in report["reason"]
    assert report["escalated_roles"] == []
    assert main(["policy", "check", "--policy", "project", "--call", call]) == 0
    assert capsys.readouterr().out.startswith("deny  by no-changes-outside")


RUN = '{"operation": "shell.run", "arguments": {"argv": ["pytest"]}}'


@pytest.mark.parametrize(
    ("tier", "rule", "note"),
    [
        ("full", "run-in-the-sandbox", "judged for the full command sandbox, as --tier asks"),
        ("copy", "ask-where-it-is-weaker", "judged for the copy command sandbox, as --tier asks"),
        ("none", "ask-where-it-is-weaker", "judged without a command sandbox, as --tier asks"),
    ],
)
def test_check_and_explain_judge_a_program_for_the_tier_that_is_asked_for(
    tier: str, rule: str, note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = said(capsys, "check", "--policy", "project", "--call", RUN, "--tier", tier)
    assert (report["rule"], report["facts"]) == (rule, {"tier": tier})
    explained = said(capsys, "explain", "--policy", "project", "--call", RUN, "--tier", tier)
    assert explained["decision"]["rule"] == rule
    for action in ("check", "explain"):
        assert main(["policy", action, "--policy", "project", "--call", RUN, "--tier", tier]) == 0
        assert note in capsys.readouterr().err


def test_a_program_is_judged_for_the_sandbox_of_this_machine(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    here = asyncio.run(probe_sandbox(tmp_path / "probe")).tier
    report = said(capsys, "check", "--policy", "project", "--call", RUN)
    assert report["facts"] == {"tier": here}
    assert report["rule"] == ("run-in-the-sandbox" if here == "full" else "ask-where-it-is-weaker")
    assert main(["policy", "check", "--policy", "project", "--call", RUN]) == 0
    assert "which is what this machine has" in capsys.readouterr().err


def test_a_call_that_runs_no_program_has_no_tier(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    call = '{"operation": "world.list"}'
    assert said(capsys, "check", "--policy", "project", "--call", call)["facts"] == {}
    assert main(["policy", "check", "--policy", "project", "--call", call, "--tier", "copy"]) == 0
    assert "sandbox" not in capsys.readouterr().err
    assert not (tmp_path / "home" / "cache").exists(), "nothing is probed for it"


def test_a_connection_is_judged_by_the_registries_of_this_machine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    for host, rule in (("mirror.example", "registries"), ("other.example", "other-hosts")):
        call = json.dumps({"operation": "net.connect", "arguments": {"host": host, "port": 443}})
        assert said(capsys, "check", "--policy", "project", "--call", call, "--tier", "full")["rule"] == rule


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("ground"))


@pytest.mark.parametrize("case", cases("policy"))
def test_check_takes_a_compiled_policy_and_judges_by_the_real_world(
    case: Any, ground: Ground, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = ground.folders
    root = folders["S"].parent
    monkeypatch.setenv("HOME", str(root / "home"))
    values = [word for name, folder in folders.items() for word in ("--value", f"{name}={folder}")]
    report = said(
        capsys, "check", "--policy", str(root / "compiled-policy.json"), "--annotations", str(root / "tool-annotations.json"),
        "--workspace", str(folders["S"]), "--protected", str(folders["P"]), "--call", json.dumps(ground.put(case["input"])),
        *values,
    )  # fmt: skip
    assert (report["decision"], report["rule"]) == (case["expect"]["decision"], case["expect"]["rule"]), (
        report
    )
    assert report["escalated_roles"] == case["expect"].get("escalatedRoles", [])


def test_explain_names_the_skipped_rules(capsys: pytest.CaptureFixture[str]) -> None:
    call = '{"operation": "world.read", "arguments": {"path": "/etc/hosts"}}'
    report = said(capsys, "explain", "--policy", "project", "--call", call)
    assert report["decision"]["rule"] == "ask-about-the-rest"
    assert "read-inside" in [over["rule"] for over in report["claims"][0]["passed_over"]]
    assert main(["policy", "explain", "--policy", "project", "--call", call]) == 0
    assert "not read-inside (project:" in capsys.readouterr().out


def test_test_runs_the_examples_and_fails_if_one_fails(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert said(capsys, "test", "safe-edit")["failed"] == []
    file = tmp_path / "p.yaml"
    file.write_text(
        "policy: p\nrules:\n  - name: r\n    allow: world.read\n    paths: [a]\n"
        "    examples: {matches: [world.read: {path: b}]}\n"
    )
    assert len(said(capsys, "test", str(file), code=1)["failed"]) == 1
    assert main(["policy", "test", str(file)]) == 1
    assert "p.yaml:6:" in capsys.readouterr().out


def test_lint_fails_on_warnings_only(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert said(capsys, "lint", "project") == []
    file = tmp_path / "p.yaml"
    file.write_text("policy: p\nrules:\n  - {name: r, allow: '*'}\n")
    assert said(capsys, "lint", str(file), code=1)[0]["code"] == "too-open"


def test_diff_shows_where_code_may_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide, narrow = tmp_path / "wide.yaml", tmp_path / "narrow.yaml"
    rules = "policy: p\nrules:\n  - {name: r, deny: '*'}\n"
    wide.write_text(rules)
    narrow.write_text(f"{rules}sandboxes: [python, lisp]\n")
    assert main(["policy", "diff", str(wide), str(narrow)]) == 0
    assert "~ code may run in: anywhere -> python, lisp\n" in capsys.readouterr().out
    assert said(capsys, "diff", str(wide), str(narrow))["sandboxes"] == [None, ["python", "lisp"]]
    assert main(["policy", "diff", str(narrow), str(narrow)]) == 0
    assert "code may run" not in capsys.readouterr().out


def test_diff_shows_looser_decisions(capsys: pytest.CaptureFixture[str]) -> None:
    report = said(capsys, "diff", "safe-analysis", "safe-edit")
    assert report["added"] == ["propose-edits"]
    assert main(["policy", "diff", "safe-analysis", "safe-edit"]) == 0
    assert "looser   deny -> stage  world.write" in capsys.readouterr().out


def test_show_lists_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert "safe-analysis" in said(capsys, "show")
    assert main(["policy", "show", "project"]) == 0
    assert capsys.readouterr().out.startswith("policy: project\n")


def test_backtest_without_history_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "backtest", "project")["calls"] == 0


async def record(events: list[Event], workspace: str = "") -> None:
    home = Home.default()
    home.prepare()
    store = await open_store(home, clock=FakeClock())
    opened = SessionOpened(
        principal=PERSON, folder="", workspace=workspace, policy="p", policy_digest="", model=""
    )
    journal = await store.create(opened)
    await journal.append(*events)
    await journal.release()
    await store.close()


def intended(number: int, operation: str, arguments: JsonObject, verdict: Verdict = "allow") -> CallIntended:
    call = Call(id=call_id(1, number), operation=operation, arguments=arguments)
    decision = Decision(verdict=verdict, rule="r", reason="")
    return CallIntended(call=call, decision=decision, digest=call.digest, tool_digest="")


def test_backtest_judges_recorded_calls_again(capsys: pytest.CaptureFixture[str]) -> None:
    wish = Call(id=call_id(1, 4), operation="net.fetch", arguments={"url": "https://example.com/"})
    asked = Escalation(
        id=EscalationId("e"), call=wish, decision=Decision(verdict="escalate", rule="r", reason=""), digest="",
        tool_digest="", policy_digest="", opened_ms=0, expires_ms=1,
    )  # fmt: skip
    asyncio.run(
        record(
            [
                intended(1, "world.read", {"path": "a"}),
                intended(2, "world.write", {"path": "/etc/x", "content": ""}),
                refused(3, "world.read", {"path": "a"}, "r", "p.yaml:3"),
                EscalationOpened(escalation=asked),
                intended(4, "net.fetch", {"url": "https://example.com/"}, "escalate"),
            ]
        )
    )
    report = said(capsys, "backtest", "project")
    assert (report["calls"], report["changed"], report["looser"]) == (4, 2, 1)
    assert main(["policy", "backtest", "project"]) == 0
    out = capsys.readouterr().out
    assert "1  allow -> deny  world.write" in out
    assert "1  deny -> allow  world.read" in out


def test_backtest_counts_a_call_once_however_many_forks_share_it_and_each_after_a_rewind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def forked() -> str:
        home = Home.default()
        home.prepare()
        store = await open_store(home, clock=FakeClock())
        opened = SessionOpened(
            principal=PERSON, folder="", workspace="", policy="", policy_digest="", model=""
        )
        journal = await store.create(opened)
        asked = Escalation(
            id=EscalationId("e"), call=intended(1, "world.read", {"path": "a"}).call,
            decision=Decision(verdict="escalate", rule="r", reason=""), digest="",
            tool_digest="", policy_digest="", opened_ms=0, expires_ms=1,
        )  # fmt: skip
        await journal.append(
            EscalationOpened(escalation=asked),
            intended(1, "world.read", {"path": "a"}, "escalate"),
            SessionRewound(seq=1, turn=0, principal=PERSON),
            intended(1, "world.read", {"path": "b"}),
        )
        fork = await store.fork(journal.session, at=journal.recorded[-1].seq, opened=opened)
        await fork.append(intended(2, "world.read", {"path": "c"}))
        await fork.release()
        await journal.release()
        await store.close()
        return fork.session

    fork = asyncio.run(forked())
    assert said(capsys, "backtest", "project")["calls"] == 3
    assert said(capsys, "backtest", "project", "--session", fork)["calls"] == 3


def refused(number: int, operation: str, arguments: JsonObject, rule: str, source: str) -> CallRefused:
    call = Call(id=call_id(1, number), operation=operation, arguments=arguments)
    return CallRefused(call=call, decision=Decision(verdict="deny", rule=rule, reason="", source=source))


def test_backtest_knows_servers_and_workspaces_and_what_no_policy_was_asked_about(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    inside = str(tmp_path / "work" / "a")
    asyncio.run(
        record(
            [
                intended(1, "filesystem.read_file", {"path": inside}),
                refused(2, "world.read", {"path": "k"}, "structural-protected-path", "built-in"),
                refused(3, "gone.tool", {}, "structural-unknown-tool", "built-in"),
                refused(4, "world.read", {"path": "a"}, "budget-calls", "gate"),
                refused(5, "net.fetch", {"url": "https://a.example/"}, "r", "p.yaml:3 (no-handler)"),
            ],
            workspace=str(tmp_path / "work"),
        )
    )
    report = said(capsys, "backtest", "project")
    assert (report["calls"], report["changed"]) == (4, 0), report["shifts"]


def test_backtest_agrees_with_judging_each_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = random.Random(3)
    paths = ("a.py", "src/a.py", ".env", "../x", "/etc/hosts", "~/.ssh/id", "/p/src/b", "")
    urls = ("https://example.com/", "http://localhost/", "no url")

    def wish(number: int) -> CallIntended:
        wishes: list[tuple[str, JsonObject]] = [
            ("world.read", {"path": rng.choice(paths)}),
            ("world.write", {"path": rng.choice(paths), "content": "x"}),
            ("world.move", {"source": rng.choice(paths), "destination": rng.choice(paths)}),
            ("net.fetch", {"url": rng.choice(urls)}),
            ("world.list", {}),
            ("world.read", {"path": 7}),
            ("gone.tool", {}),
        ]
        operation, arguments = rng.choice(wishes)
        return intended(number, operation, arguments, rng.choice(["allow", "deny", "escalate", "stage"]))

    journals = [[wish(number) for number in range(1, 100)] for _ in range(3)]
    for journal in journals:
        asyncio.run(record([*journal], workspace="/p"))
    shifts: Counter[tuple[str, str, str]] = Counter()
    for event in (event for journal in journals for event in journal):
        call, tool = event.call, KNOWN_TOOLS.get(event.call.operation)
        place = LexicalPaths("/p", home=str(Path.home()))
        targets = targets_of(tool, call.arguments, place) if tool is not None else ()
        after = load_policy("project").judge(Request(call=call, tool=tool, targets=targets)).verdict
        if after != event.decision.verdict:
            shifts[call.operation, event.decision.verdict, after] += 1
    report = said(capsys, "backtest", "project")
    assert report["calls"] == 297
    assert report["changed"] == shifts.total() > 100
    assert {
        (one["operation"], one["before"], one["after"]): one["count"] for one in report["shifts"]
    } == shifts


def test_backtest_reports_an_unreadable_session_and_continues(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for path in ("a", "b", "c"):
        asyncio.run(record([intended(1, "world.read", {"path": path})]))
    with contextlib.closing(sqlite3.connect(tmp_path / "home" / "holdfast.db")) as database, database:
        ((damaged,),) = database.execute("SELECT session FROM event WHERE seq = 2 LIMIT 1 OFFSET 1")
        database.execute("UPDATE event SET body = 'no event' WHERE session = ? AND seq = 2", (damaged,))
    assert main(["policy", "backtest", "project"]) == 1
    said_to = capsys.readouterr()
    assert "2 calls of 2 sessions: 0 change, 0 looser" in said_to.out
    assert f"{damaged} is skipped" in said_to.err
    assert f"hint: `holdfast verify {damaged}`" in said_to.err
    report = said(capsys, "backtest", "project", code=1)
    assert (report["calls"], report["unread"]) == (2, [damaged])


def test_backtest_takes_paths_by_the_workspace_a_session_had_at_the_time(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")

    def read(number: int, folder: str) -> CallIntended:
        return intended(number, "world.read", {"path": f"{folder}/a"})

    async def moved() -> None:
        home = Home.default()
        home.prepare()
        store = await open_store(home, clock=FakeClock())
        opened = SessionOpened(
            principal=PERSON, folder="", workspace=first, policy="", policy_digest="", model=""
        )
        journal = await store.create(opened)
        await journal.append(read(1, first), SessionReconfigured(workspace=second), read(2, second))
        own = msgspec.structs.replace(opened, workspace="")
        fork = await store.fork(journal.session, at=journal.recorded[-1].seq, opened=own)
        await fork.append(read(3, str(home.workspace(fork.session))))
        for each in (fork, journal):
            await each.release()
        await store.close()

    asyncio.run(moved())
    assert said(capsys, "backtest", "project")["changed"] == 0


def test_check_knows_the_tools_of_a_well_known_server(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for path, verdict in (("a", "allow"), ("/etc/hosts", "escalate")):
        call = json.dumps({"operation": "filesystem.read_file", "arguments": {"path": path}})
        report = said(capsys, "check", "--policy", "project", "--workspace", str(tmp_path), "--call", call)
        assert report["decision"] == verdict


def test_check_uses_the_roles_that_a_person_assigned_to_a_server(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "mcp-servers.json").write_text(
        '{"mcpServers": {"disk": {"command": "npx", "args": ["@modelcontextprotocol/server-filesystem"]}}}'
    )
    call = '{"operation": "disk.write_file", "arguments": {"path": "/etc/hosts", "content": "x"}}'
    assert said(capsys, "check", "--policy", "project", "--call", call)["rule"] == "no-changes-outside"
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "policy: p\ntools:\n  disk.write_file: {path: none, content: none}\n"
        "rules:\n  - {name: all, allow: '*', inside: true}\n"
    )
    assert said(capsys, "check", "--policy", str(policy), "--call", call)["decision"] == "deny", (
        "a policy cannot call the path of a write mere data"
    )


@pytest.mark.parametrize("call", ["", "[]", "{}", '{"operation": 3}', '{"arguments": {}}'])
def test_an_invalid_call_is_a_usage_error(call: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "check", "--policy", "project", "--call", call]) == 2
    assert "hint: expected" in capsys.readouterr().err


def test_a_broken_policy_is_a_usage_error_that_names_the_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("policy: p\nrules:\n  - {name: r, alow: world.read}\n")
    assert main(["policy", "lint", str(file)]) == 2
    assert "p.yaml:3:15: a rule has no field 'alow'; expected one of" in capsys.readouterr().err


def test_the_cases_are_all_there() -> None:
    assert len([case for case in DATA["cases"] if case["kind"] == "policy"]) >= 40


def test_no_name_in_a_policy_commands_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        'policy: p\nrules:\n  - name: "a\\e]0;x\\a"\n    allow: world.read\n    examples:\n'
        '      matches: [{world.write: {path: "\\e[2J", content: x}}]\n'
    )
    for words in (["lint", str(file)], ["test", str(file)], ["diff", "project", str(file)]):
        main(["policy", *words])
        assert "\x1b" not in capsys.readouterr().out


def test_examples_about_tools_of_a_server_that_is_not_there_load_and_are_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "mcp.yaml"
    file.write_text(
        "policy: m\nrules:\n  - name: zones\n    allow: clock.convert\n    arguments: {zone: {prefix: Europe/}}\n"
        "    because: b\n    examples:\n      matches: [{clock.convert: {zone: Europe/Rome}}]\n"
    )
    assert load_policy(str(file)).name == "m"
    assert main(["policy", "test", str(file)]) == 0
    out = capsys.readouterr().out
    assert "not checked: clock.convert is not known; add its server with holdfast mcp add" in out
    assert "1 example, 0 failed" in out


def test_a_misspelled_built_in_operation_in_an_example_is_still_an_error(tmp_path: Path) -> None:
    file = tmp_path / "typo.yaml"
    file.write_text(
        "policy: m\nrules:\n  - {name: r, allow: world.read, examples: {matches: [{world.reed: {path: a}}]}}\n"
    )
    with pytest.raises(InvalidPolicy, match="no toolset offers"):
        load_policy(str(file))


def answered(number: int, path: str, verdict: Literal["approve", "deny"]) -> list[Event]:
    call = Call(id=call_id(1, number), operation="world.read", arguments={"path": path})
    escalation = Escalation(
        id=EscalationId(f"e{number}"), call=call, decision=Decision(verdict="escalate", rule="r", reason=""), digest="",
        tool_digest="", policy_digest="", opened_ms=0, expires_ms=1,
        targets=targets_of(KNOWN_TOOLS["world.read"], call.arguments, LexicalPaths()),
    )  # fmt: skip
    answer = EscalationAnswered(
        escalation=escalation.id, response=Response(verdict=verdict), principal=PERSON, transport="test"
    )
    return [EscalationOpened(escalation=escalation), answer]


def test_suggest_shows_rules_and_saves_nothing_unasked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    events = [
        *answered(1, "/data/a", "approve"),
        *answered(2, "/data/b", "approve"),
        *answered(3, "/etc/x", "deny"),
    ]
    asyncio.run(record(events))
    assert said(capsys, "suggest", "--last", "30d")["prompts"] == 0, "the answers are from long ago"
    report = said(capsys, "suggest")
    assert (report["prompts"], report["answered"], len(report["rules"])) == (2, 2, 1)
    assert report["backtest"]["looser"] == 2
    assert main(["policy", "suggest", "--save", "mine"]) == 2, "it asks, and nobody is there"
    assert not (tmp_path / "home" / "policies" / "mine.yaml").exists()
    assert main(["policy", "suggest", "--save", "mine", "--yes"]) == 0
    out = capsys.readouterr().out
    assert 'within: ["/data"]' in out
    mine = load_policy("mine", search=(tmp_path / "home" / "policies",))
    assert judged(mine, "/data/c").verdict == "allow"
    assert judged(mine, "/etc/x").verdict == "escalate"
    assert main(["policy", "suggest", "--save", "mine", "--yes"]) == 2, "a policy is never replaced"


def judged(policy: RulePolicy, path: str) -> Decision:
    tool, call = (
        KNOWN_TOOLS["world.read"],
        Call(id=call_id(1, 1), operation="world.read", arguments={"path": path}),
    )
    return policy.judge(
        Request(call=call, tool=tool, targets=targets_of(tool, call.arguments, LexicalPaths()))
    )


def test_suggest_without_history_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "suggest"]) == 0
    assert "0 answered prompts: no rule to suggest" in capsys.readouterr().err
