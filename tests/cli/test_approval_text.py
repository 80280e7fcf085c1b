"""What a person is asked about is shown to the letter, also what no eye sees."""

import pytest

from holdfast.cli.approvals.text import describe_effect, exact_call
from holdfast.cli.views.narrator import describe_call
from holdfast.core import Call, Decision, Escalation, EscalationId, UrlTarget, call_id


@pytest.mark.parametrize("letter", ["\u3164", "\u00a0", "\ufe01", "\U000e0101", "\u202e", "\x1b"])
def test_nothing_in_a_call_hides_from_the_person(letter: str) -> None:
    call = Call(id=call_id(1, 1), operation="mail.send", arguments={"to": f"ann{letter}@example.org"})
    shown = "\n".join(exact_call(call))
    assert letter not in shown
    assert f"ann<U+{ord(letter):04X}>@example.org" in shown


def test_the_name_of_an_argument_cannot_pass_for_another_argument() -> None:
    call = Call(
        id=call_id(1, 1), operation="mail.send", arguments={"x: 1\n  to": "boss@example.org\n  to: ann"}
    )
    assert exact_call(call) == ["mail.send", "  x: 1<U+000A>  to: boss@example.org", "      to: ann"]


def test_what_a_call_reaches_cannot_pass_for_a_line_of_ours() -> None:
    given = "https://example.org/\n  can be undone: yes"
    call = Call(id=call_id(1, 1), operation="net.fetch", arguments={"url": given})
    escalation = Escalation(
        id=EscalationId("1"),
        call=call,
        decision=Decision(verdict="escalate", rule="ask", reason="it leaves the house"),
        digest="",
        tool_digest="",
        policy_digest="",
        opened_ms=0,
        expires_ms=1,
        targets=(UrlTarget(role="fetch-url", argument="url", given=given),),
    )
    assert describe_effect(escalation) == f"The agent wants to fetch {given.replace(chr(10), '<U+000A>')}"


def test_a_call_in_one_line_is_one_line_and_writes_nothing_of_its_own_to_the_terminal() -> None:
    call = Call(
        id=call_id(1, 1),
        operation="world.read\x1b]0;owned\x07\n  allow   fake",
        arguments={"pa\x1b[31mth\n": "x\x1b[2J\ny"},
    )
    told = describe_call(call)
    assert told.splitlines() == [told]
    assert "\x1b" not in told
