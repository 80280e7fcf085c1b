"""`holdfast replay`: runs a session's code again without a model, and reports differences."""

import asyncio
import json
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.cli import main
from holdfast.core import PERSON, Ok, SystemClock
from holdfast.core.events import CodePosted, RunEnded, RunStarted, SessionOpened, TurnEnded
from holdfast.models import ScriptedModel, use
from holdfast.policy import FixedPolicy
from holdfast.store import Home, open_store

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def record(home: Path, *runs: RunEnded, code: str = "print('one')\nprint('two')\n1 + 1") -> None:
    """Record a session whose journal claims these endings for the code."""

    async def write() -> None:
        store = await open_store(Home(home), clock=SystemClock())
        opened = SessionOpened(
            principal=PERSON, folder="/", workspace="", policy="p", policy_digest="", model=""
        )
        journal = await store.create(opened)
        for turn, ended in enumerate(runs, 1):
            await journal.append(
                CodePosted(turn=turn, code=code, language="python", principal=PERSON),
                RunStarted(turn=turn, run=1, code=code, engine="python", first_call=1, seed=1, started_ms=0),
                ended,
                TurnEnded(turn=turn, outcome=Ok()),
            )
        await journal.release()
        await store.close()

    asyncio.run(write())


def ended(turn: int, **fields: object) -> RunEnded:
    return RunEnded(**{"turn": turn, "run": 1, "status": "ok", "value": 2, "printed": "one\ntwo\n", **fields})  # type: ignore[arg-type]


def test_a_model_turn_is_replayed_without_the_model(home: Path, capsys: Captured) -> None:
    async def live() -> str:
        runtime = await Runtime.start(home=home)
        code = "open('a.txt', 'w').write('x')\nprint(open('a.txt').read())"
        session = await runtime.create(
            model=ScriptedModel([use("execute_code", {"code": code}), "Done."]),
            policy=FixedPolicy(default="allow"),
        )
        await session.send("go")
        await runtime.close()
        return session.id

    assert main(["replay", asyncio.run(live())]) == 0
    assert "1 run with" in capsys.readouterr().out


def test_every_difference_is_reported_with_its_position(home: Path, capsys: Captured) -> None:
    record(home, ended(1), ended(2, value=3), ended(3, printed="one\nthree\n"), ended(4, status="error"))
    assert main(["replay"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out == [
        "4 runs with 0 calls, 3 differ from the record",
        "  turn 2, run 1: its last line is 2; the journal has 3",
        "  turn 3, run 1: line 2 of its output is 'two\\n'; the journal has 'three\\n'",
        "  turn 4, run 1: it ended as ok; the journal has error",
    ]


def test_a_missing_line_end_is_a_difference(home: Path, capsys: Captured) -> None:
    record(home, ended(1, printed="one\ntwo"))
    assert main(["replay"]) == 1
    assert "line 2 of its output is 'two\\n'; the journal has 'two'" in capsys.readouterr().out


def test_runs_that_cannot_be_replayed_are_counted(home: Path, capsys: Captured) -> None:
    record(home, ended(1), ended(2, engine="wasi"))
    assert main(["replay"]) == 0
    out = capsys.readouterr().out
    assert "1 run with 0 calls, 0 differ" in out
    assert "skipped: 1 run that used files outside the journal" in out
    assert main(["replay", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["runs"], report["skipped"], report["divergences"]) == (1, 1, [])
