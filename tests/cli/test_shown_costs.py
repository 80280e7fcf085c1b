"""What is shown is cut before it is escaped: an argument of megabytes costs no more than a small one."""

from collections.abc import Callable, Iterator

import pytest

import holdfast.core.text
from holdfast.cli.approvals.text import fit_lines
from holdfast.cli.views.narrator import Narrator, describe_call
from holdfast.core import Call, Decision, Escalation, EscalationId, Json, SessionId, call_id
from holdfast.core.approval_text import describe_effect
from holdfast.core.events import (
    CallIntended,
    CallSettled,
    EscalationOpened,
    Event,
    Noted,
    RecordedEvent,
    RunEnded,
    RunStarted,
)
from holdfast.mcp.proxy.approvals import describe as describe_elicitation
from holdfast.services import call_lines
from holdfast.session import Settings

MAX_EXAMINED = 150_000
BIG = "é" * 8_000_000
VALUES: dict[str, Json] = {
    "a text": BIG,
    "lines": "é\n" * 4_000_000,
    "a text in a list": [BIG],
    "a text in a table": {"é": {"é": BIG}},
    "a long name": {BIG: 1},
    "many items": ["é"] * 500_000,
    "many names": {f"é{n}": n for n in range(200_000)},
}


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of characters of each text that was examined one by one."""
    lengths: list[int] = []
    characters: Callable[[str], Iterator[tuple[str, bool]]] = holdfast.core.text._characters

    def count(text: str) -> Iterator[tuple[str, bool]]:
        lengths.append(len(text))
        return characters(text)

    monkeypatch.setattr(holdfast.core.text, "_characters", count)
    return lengths


def call_with(value: Json) -> Call:
    return Call(id=call_id(1, 1), operation="box.put", arguments={"value": value})


def escalation_of(call: Call) -> Escalation:
    decision = Decision(verdict="escalate", rule="r", reason="because")
    return Escalation(
        id=EscalationId("e"),
        call=call,
        decision=decision,
        digest="d",
        tool_digest="t",
        policy_digest="p",
        opened_ms=0,
        expires_ms=1,
    )


@pytest.mark.parametrize("kind", VALUES)
def test_f43_a_call_in_one_line_costs_the_same_for_any_argument(kind: str, examined: list[int]) -> None:
    shown = describe_call(call_with(VALUES[kind]))
    assert len(shown) < 200
    assert sum(examined) < 2_000


@pytest.mark.parametrize("kind", VALUES)
def test_f43_an_approval_costs_the_same_for_any_argument(kind: str, examined: list[int]) -> None:
    call = call_with(VALUES[kind])
    lines, is_whole = fit_lines(call_lines(call))
    assert not is_whole
    assert describe_effect(escalation_of(call))
    assert sum(map(len, lines)) < MAX_EXAMINED
    assert sum(examined) < MAX_EXAMINED


@pytest.mark.parametrize("kind", ["a text", "lines", "many names"])
def test_f43_an_elicitation_costs_the_same_for_any_argument(kind: str, examined: list[int]) -> None:
    shown = describe_elicitation(escalation_of(call_with(VALUES[kind])))
    assert "characters omitted: review them before you approve" in shown
    assert len(shown) < MAX_EXAMINED
    assert sum(examined) < MAX_EXAMINED


def test_f43_the_narrator_costs_the_same_for_any_event(examined: list[int]) -> None:
    call, decision = call_with(BIG), Decision(verdict="allow", rule="r", reason=BIG)
    events: list[Event] = [
        CallIntended(call=call, decision=decision, digest="d", tool_digest="t"),
        CallIntended(
            call=call, decision=Decision(verdict="deny", rule="r", reason=BIG), digest="d", tool_digest="t"
        ),
        EscalationOpened(escalation=escalation_of(call)),
        CallSettled(call=call.id, status="error", error=BIG),
        RunStarted(turn=1, run=1, engine="python", code=BIG, first_call=1, seed=0, started_ms=0),
        RunEnded(turn=1, run=1, status="ok", printed=BIG),
        RunEnded(turn=1, run=1, status="error", error=BIG),
        Noted(code="x", text=BIG),
    ]
    said: list[str] = []
    narrator = Narrator(lambda text, _: said.append(text), shows_code=True)
    for seq, event in enumerate(events, start=1):
        narrator(RecordedEvent(session=SessionId("s"), seq=seq, at_ms=0, event=event, hash=b""))
    assert len(said) >= len(events)
    assert sum(map(len, said)) < 10 * 21_000
    assert sum(examined) < 10 * 21_000


def test_f43_plain_text_is_not_examined_one_by_one(examined: list[int]) -> None:
    assert holdfast.core.text.escape_invisible("plain\n" * 1000) == "plain\n" * 1000
    assert examined == []


def test_f43_the_size_of_a_workspace_and_of_a_turn_is_limited_by_default() -> None:
    settings = Settings()
    assert settings.workspace_bytes == 10_000_000_000
    assert settings.turn_budget.bytes_written == 2_000_000_000


def test_a_call_is_one_line_without_tabs() -> None:
    assert describe_call(call_with("a\tb\nc")).endswith(r"=a\tb\nc")


@pytest.mark.promise("P12")
def test_the_line_of_a_call_marks_letters_that_look_like_others() -> None:
    assert describe_call(call_with("p\u0430ssword.txt")).endswith("=p\u0430<U+0430>ssword.txt")
