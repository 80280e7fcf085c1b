"""The text of an approval question shows every character of the call."""

import pytest

from holdfast.cli.approvals.text import describe_effect, exact_call
from holdfast.cli.views.narrator import describe_call
from holdfast.core import Call, Decision, Escalation, EscalationId, UrlTarget, call_id


@pytest.mark.parametrize("letter", ["\u3164", "\u00a0", "\ufe01", "\U000e0101", "\u202e", "\x1b"])
def test_hidden_characters_in_a_call_are_shown(letter: str) -> None:
    call = Call(id=call_id(1, 1), operation="mail.send", arguments={"to": f"ann{letter}@example.org"})
    shown = "\n".join(exact_call(call))
    assert letter not in shown
    assert f"ann<U+{ord(letter):04X}>@example.org" in shown


def test_an_argument_name_cannot_imitate_another_argument() -> None:
    call = Call(
        id=call_id(1, 1), operation="mail.send", arguments={"x: 1\n  to": "boss@example.org\n  to: ann"}
    )
    assert exact_call(call) == ["mail.send", "  x: 1<U+000A>  to: boss@example.org", "      to: ann"]


def test_a_target_cannot_imitate_a_line_of_the_question() -> None:
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


def test_a_call_description_is_one_escaped_line() -> None:
    call = Call(
        id=call_id(1, 1),
        operation="world.read\x1b]0;owned\x07\n  allow   fake",
        arguments={"pa\x1b[31mth\n": "x\x1b[2J\ny"},
    )
    expected = describe_call(call)
    assert expected.splitlines() == [expected]
    assert "\x1b" not in expected
