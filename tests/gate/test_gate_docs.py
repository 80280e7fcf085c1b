"""The documentation of the gate is true: its commands, files and programs run, and the tests it names exist."""

import asyncio
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from holdfast.app import Runtime
from holdfast.cli import main
from holdfast.core import PERSON, Call, FakeClock, FunctionToolset, Limits, Parked, Response, Tool, call_id
from holdfast.core.events import MessagePosted, SessionOpened
from holdfast.gate import ApprovalFiles, Gate
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import MemoryStore

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "design" / "gate.md").read_text("utf-8")
GUIDE = (ROOT / "docs" / "guides" / "approve-from-elsewhere.md").read_text("utf-8")
TOOL = Tool(
    name="box.put", parameters={"type": "object", "properties": {"what": {"type": "string"}}}, roles={}
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_every_test_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 40
    texts = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    there = {name for text in texts for name in re.findall(r"def (test_\w+)\(", text)}
    assert named - there == set()


def test_every_numbered_weakness_is_in_the_table() -> None:
    rows = [int(number) for number in re.findall(r"^\| W(\d+)", PAGE, re.MULTILINE)]
    assert rows == list(range(1, 31))


async def gate_with_approval_files(folder: Path) -> tuple[Gate, ApprovalFiles]:
    clock = FakeClock()
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    journal = await MemoryStore(clock=clock).create(opened)
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    gate = Gate(
        journal=journal,
        policy=FixedPolicy(default="escalate"),
        toolsets=[FunctionToolset({TOOL.name: (TOOL, lambda _: "done")})],
        paths=LexicalPaths(),
        clock=clock,
    )
    meeting = ApprovalFiles(folder, gate=gate, journal=journal)
    await meeting.open()
    return gate, meeting


async def ask(gate: Gate, what: str, number: int = 1) -> Parked:
    call = Call(id=call_id(1, number), operation=TOOL.name, arguments={"what": what})
    parked = await gate.submit(call)
    assert isinstance(parked, Parked)
    return parked


async def test_a_request_has_the_fields_of_the_guide_and_the_answer_of_the_guide_is_taken(
    tmp_path: Path,
) -> None:
    gate, meeting = await gate_with_approval_files(tmp_path)
    parked = await ask(gate, "rope")
    shown, answer = blocks("json")
    request = json.loads((tmp_path / f"request-{parked.escalation}.json").read_text())
    assert list(request) == list(json.loads(shown))
    assert {field: type(value) for field, value in request.items()} == {
        field: type(value) for field, value in json.loads(shown).items()
    }
    (tmp_path / "draft").write_text(answer.replace("9f2c", request["digest"]))
    (tmp_path / "draft").rename(tmp_path / f"response-{parked.escalation}.json")
    assert (await gate.wait(parked.escalation)).verdict == "approve"
    await meeting.close()


def test_every_field_of_an_answer_stands_in_the_guide() -> None:
    from holdfast.gate.approval_files import _Answer

    fields = {field.name for field in msgspec.structs.fields(_Answer)}
    assert fields == set(re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE))


@pytest.mark.parametrize(("says", "verdict"), [("yes", "approve"), ("no", "deny"), ("yes, but", "deny")])
async def test_the_program_of_the_guide_asks_a_command_and_answers(
    tmp_path: Path, says: str, verdict: str
) -> None:
    [program] = blocks("python")
    (tmp_path / "ask.py").write_text(program)
    gate, meeting = await gate_with_approval_files(tmp_path / "escalations")
    parked = await ask(gate, "a\u202ebc")
    reply = f"import sys; text = sys.stdin.read(); assert '\\\\u202e' in text, text; print({says!r})"
    words = [sys.executable, "-I", str(tmp_path / "ask.py"), str(tmp_path / "escalations")]
    other = await asyncio.create_subprocess_exec(
        *words, sys.executable, "-c", reply, stdout=subprocess.DEVNULL
    )
    try:
        assert (await gate.wait(parked.escalation)).verdict == verdict
    finally:
        other.terminate()
        await other.wait()
    await meeting.close()


def test_the_commands_of_the_guide_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    answering, changing = (block.strip().splitlines() for block in blocks("sh"))
    assert [line.split()[1] for line in answering] == ["waiting", "approve", "deny"]

    def run(line: str) -> None:
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)][1:]
        assert main(words) == 0, capsys.readouterr().err

    async def live() -> None:
        runtime = await Runtime.start(home=tmp_path / "home")
        try:
            session = await runtime.create(
                policy=FixedPolicy(default="escalate"),
                needs_model=False,
                sandbox="lisp",
                limits=Limits(calls=10),
            )
            await session.execute('(world/write "a.txt" "1")', language="lisp")
            await asyncio.to_thread(run, answering[0])
            await asyncio.to_thread(run, answering[1])
            await session.advance()
            await session.execute('(world/write "a.txt" "2")', language="lisp")
            await asyncio.to_thread(run, answering[2])
            await session.advance()
            await session.execute('(world/write "a.txt" "3")', language="lisp")
            yes = Response(verdict="approve", scope="session")
            await session.resolve(session.escalations()[0].id, yes)
            [grant] = session._gate.grants.active()  # its id is what `holdfast grants` prints
            for line in changing:
                line = line.replace("SESSION", session.id).replace("GRANT", grant.id)
                await asyncio.to_thread(run, line)
            await session.advance()
            assert session.budget.limits == Limits(calls=20)
        finally:
            await runtime.close()

    asyncio.run(live())
