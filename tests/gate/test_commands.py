"""audit, why, grants and budget at the command line, over a real data directory, also while a session is live elsewhere."""

import asyncio
import csv
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.gate.command_runner import Terminal

from holdfast.app import Runtime
from holdfast.core import (
    PERSON,
    Call,
    Decision,
    FunctionToolset,
    Limits,
    Response,
    SystemClock,
    Tool,
    call_id,
)
from holdfast.core.events import CallIntended, MessagePosted
from holdfast.policy import FixedPolicy
from holdfast.session import Session
from holdfast.store import Home, open_store

TOOL = Tool(
    name="box.put", parameters={"type": "object", "properties": {"what": {"type": "string"}}}, roles={}
)


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    return Terminal(tmp_path, capsys)


def calls(*operations: tuple[str, dict[str, object]]) -> dict[str, object]:
    parts = [
        {"kind": "tool-call", "id": f"c{n}", "tool": name, "arguments": arguments}
        for n, (name, arguments) in enumerate(operations)
    ]
    return {"message": {"role": "model", "parts": parts}, "usage": {}, "finish": "tool-calls"}


def in_home(terminal: Terminal, work: Callable[[Runtime], Awaitable[None]]) -> None:
    async def run() -> None:
        runtime = await Runtime.start(home=terminal.home / "home")
        try:
            await work(runtime)
        finally:
            await runtime.close()

    asyncio.run(run())


async def asked_and_answered(runtime: Runtime) -> None:
    """A session with a call that was allowed, one denied, one approved and one without an answer."""
    verdicts = {"world.write": "allow", "world.delete": "deny", "world.read": "escalate"}
    tools = FunctionToolset({TOOL.name: (TOOL, lambda _: "put")})
    session = await runtime.create(
        policy=FixedPolicy(default="escalate", verdicts=verdicts),  # type: ignore[arg-type]
        needs_model=False,
        toolsets=[tools],
        sandbox="lisp",
    )
    await session.execute('(world/write "a.txt" "hello")', language="lisp")
    await session.execute('(world/delete "a.txt")', language="lisp")
    await session.execute('(world/read "a.txt")', language="lisp")
    [waits] = session.escalations()
    await session.resolve(waits.id, Response(verdict="approve", reason="as you\nlike"), transport="test")
    await session.advance()
    await session.close()


def test_audit_filters_by_turn_and_operation_in_three_formats(terminal: Terminal) -> None:
    in_home(terminal, asked_and_answered)
    entries = json.loads(terminal("audit", "--json"))
    assert [(e["operation"], e["decision"]["verdict"], e["result"]) for e in entries] == [
        ("world.write", "allow", "ok"),
        ("world.delete", "deny", "refused"),
        ("world.read", "escalate", "ok"),
    ]
    assert [e["turn"] for e in json.loads(terminal("audit", "--json", "--turn", "2"))] == [2]
    assert len(json.loads(terminal("audit", "--json", "--op", "world.read"))) == 1
    assert json.loads(terminal("audit", "--json", "--turn", "2", "--op", "world.read")) == []
    rows = list(csv.DictReader(io.StringIO(terminal("audit", "--csv"))))
    assert (rows[2]["approver"], rows[2]["transport"], rows[2]["tokens"]) == (PERSON, "test", "0")
    stats = json.loads(terminal("audit", "--stats"))
    assert (stats["totalOperations"], stats["resultCounts"]) == (3, {"ok": 2, "refused": 1})
    [folder] = (terminal.home / "home" / "sessions").iterdir()
    assert len((folder / "audit.jsonl").read_text().splitlines()) == 3


def test_no_audit_cell_is_a_spreadsheet_formula(terminal: Terminal) -> None:
    async def wished(runtime: Runtime) -> None:
        session = await runtime.create(model=terminal.script(calls(("=cmd|'/C calc'!A0", {})), "Well."))
        await session.send("go")
        await session.close()

    in_home(terminal, wished)
    [row] = csv.DictReader(io.StringIO(terminal("audit", "--csv")))
    assert row["operation"] == "'=cmd|'/C calc'!A0"
    assert row["turn"] == "1"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("1.1", ["ok", "allow by rule"]),
        ("2.1", ["refused", "deny by rule"]),
        ("3.1", ["approved it", "as you like"]),
    ],
)
def test_why_prints_at_most_three_lines(terminal: Terminal, call: str, words: list[str]) -> None:
    in_home(terminal, asked_and_answered)
    told = terminal("why", call)
    assert len(told.splitlines()) <= 3
    assert all(each in told for each in words), told
    terminal("why", "9.9", code=2)


def test_a_turn_that_ran_out_of_budget_resumes_after_budget_add(terminal: Terminal) -> None:
    model = terminal.script(calls(("execute_code", {"code": "open('a.txt', 'w').write('x')"})), "All done.")
    terminal("-m", model, "--budget", "steps=1", "write it", code=4)
    [line] = json.loads(terminal("sessions", "--json"))
    terminal("budget", "add", line["id"], "steps=1")
    assert json.loads(terminal("budget", "--json"))["limits"]["steps"] == 2
    assert terminal("-c") == "All done.\n", terminal.said
    assert len(json.loads(terminal("audit", "--json"))) == 1


@pytest.mark.parametrize(
    "amount", ["tokens=-5", "tokens=NaN", "tokens=Infinity", "tokens=", "tokens=x", "speed=5"]
)
def test_only_a_valid_amount_can_be_added_to_a_budget(terminal: Terminal, amount: str) -> None:
    async def limited(runtime: Runtime) -> None:
        await (await runtime.create(needs_model=False, limits=Limits(tokens=10), name="n")).close()

    in_home(terminal, limited)
    terminal("budget", "add", "n", amount, code=2)
    assert json.loads(terminal("budget", "--json"))["limits"]["tokens"] == 10


def test_code_that_ran_out_of_budget_resumes_at_the_same_call_as_budget_add_says(terminal: Terminal) -> None:
    (terminal.home / "home").mkdir()
    (terminal.home / "home" / "config.toml").write_text("[budget]\ncalls = 2\n")
    (terminal.home / "p.yaml").write_text("policy: p\nrules: [{name: all, allow: 'world.*'}]\n")
    code = '(begin (world/append "a" "1") (world/append "a" "2") (world/append "a" "3"))'
    (terminal.home / "x.lisp").write_text(code)
    terminal("exec", "--lang", "lisp", "-p", "p.yaml", "x.lisp", code=4)
    assert "holdfast budget add calls=N" in terminal.said
    [session] = json.loads(terminal("sessions", "--json"))
    terminal("exec", "--session", session["id"], code=1)
    assert "has no code to resume" in terminal.said
    terminal("budget", "add", "calls=1")
    assert (
        f"resume a turn that reached its limit with: holdfast exec --session {session['id']}" in terminal.said
    )
    terminal("rename", session["id"], "appends")
    terminal("budget", "add", "appends", "calls=1")
    assert "resume a turn that reached its limit with: holdfast exec --session appends" in terminal.said
    terminal("exec", "--session", session["id"])
    audit = json.loads(terminal("audit", "--json"))
    assert [(entry["call"], entry["result"]) for entry in audit] == [
        ("1.1", "ok"),
        ("1.2", "ok"),
        ("1.3", "ok"),
    ]
    [file] = (terminal.home / "home" / "sessions").glob("*/workspace/a")
    assert file.read_text() == "123"


def test_grants_of_a_live_session_can_be_listed_and_revoked(terminal: Terminal) -> None:
    async def live(runtime: Runtime) -> None:
        session = await runtime.create(
            policy=FixedPolicy(default="escalate"), needs_model=False, sandbox="lisp"
        )
        await session.execute('(world/write "a.txt" "1")', language="lisp")
        await answer(session, Response(verdict="approve", scope="always"))
        await session.execute('(world/write "a.txt" "2")', language="lisp")
        assert session.escalations() == (), "the grant covers it"
        assert "world.write" in await asyncio.to_thread(terminal, "grants")
        assert "calls" in await asyncio.to_thread(terminal, "budget")
        [grant] = json.loads(await asyncio.to_thread(terminal, "grants", "--json"))
        assert "in every session" in grant["text"]
        await asyncio.to_thread(terminal, "grants", "revoke", grant["grant"]["id"][:4])
        await session.execute('(world/write "a.txt" "3")', language="lisp")
        assert len(session.escalations()) == 1, "and no longer, in the live session too"

    async def answer(session: Session, response: Response) -> None:
        [waits] = session.escalations()
        await session.resolve(waits.id, response)
        await session.advance()

    in_home(terminal, live)
    terminal("grants", "revoke", "never-given", code=2)


def test_an_interrupted_call_is_shown_on_resume_and_not_repeated(terminal: Terminal) -> None:
    async def cut_off() -> str:
        home = Home(terminal.home / "home")
        runtime = await Runtime.start(home=home.root)
        session = await runtime.create(model=terminal.script("I looked, it is gone."))
        await runtime.close()
        store = await open_store(home, clock=SystemClock())
        journal = await store.open(session.id)
        call = Call(id=call_id(1, 1), operation="world.delete", arguments={"path": "a.txt"})
        allowed = Decision(verdict="allow", rule="r", reason="")
        await journal.append(
            MessagePosted(turn=1, text="delete it", principal=PERSON),
            CallIntended(call=call, decision=allowed, digest=call.digest, tool_digest=""),
        )
        await journal.release()
        await store.close()
        return session.id

    session = asyncio.run(cut_off())
    assert terminal("-r", session) == "I looked, it is gone.\n"
    assert "unknown world.delete path=a.txt" in terminal.said
    assert [entry["result"] for entry in json.loads(terminal("audit", "--json"))] == ["unknown"]


def test_grants_can_be_listed_before_there_is_a_session(terminal: Terminal) -> None:
    assert terminal("grants") == ""
    assert "no saved approvals" in terminal.said
    terminal("grants", "--session", "never-begun", code=1)


@pytest.mark.parametrize(("scope", "more"), [("times=2", 1), ("turn", 2), ("session", 2), ("minutes=5", 2)])
def test_a_grant_given_from_another_process_is_what_was_shown(
    terminal: Terminal, scope: str, more: int
) -> None:
    write = '(world/write "a" "%d")'
    (terminal.home / "x.lisp").write_text("(begin " + " ".join(write % n for n in range(3)) + ")")
    terminal("exec", "--lang", "lisp", "-p", "ask-always", "x.lisp", code=5)
    shown = terminal("waiting")
    rule = shown.partition("a saved approval would cover: ")[2].strip()
    assert rule.startswith("world.write on path ")
    assert rule.endswith("with any content")
    terminal("approve", "--for", scope)
    assert rule.split()[-1] in terminal.said
    [grant] = json.loads(terminal("grants", "--json"))
    assert grant["text"].startswith(" ".join(rule.split()) + ", ")
    [session] = json.loads(terminal("sessions", "--json"))
    terminal("exec", "--session", session["id"], code=0 if more == 2 else 5)
    by_grant = [entry for entry in json.loads(terminal("audit", "--json")) if entry["transport"] == "grant"]
    assert len(by_grant) == more


def test_a_waiting_call_says_where_its_values_come_from_and_whether_it_can_be_undone(
    terminal: Terminal,
) -> None:
    (terminal.home / "x.lisp").write_text('(world/write "a" "1")')
    terminal("exec", "--lang", "lisp", "-p", "ask-always", "x.lisp", code=5)
    shown = " ".join(terminal("waiting").split())
    [call] = json.loads(terminal("waiting", "--json"))
    assert f"values from: {call['values_from']} can be undone: {call['undo']}" in shown


@pytest.mark.parametrize("scope", ["always", "times", "times=0", "times=-1", "times=9999999", "turn=2", "x"])
def test_an_invalid_scope_is_not_an_approval(terminal: Terminal, scope: str) -> None:
    (terminal.home / "x.lisp").write_text('(world/write "a" "1")')
    terminal("exec", "--lang", "lisp", "-p", "ask-always", "x.lisp", code=5)
    terminal("approve", "--for", scope, code=2)
    assert len(json.loads(terminal("waiting", "--json"))) == 1
