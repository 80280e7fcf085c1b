"""The text of an approval question shows every character of the call."""

import pytest

from holdfast.cli.approvals.text import fit_lines
from holdfast.cli.views.narrator import describe_call
from holdfast.core import Call, Decision, Escalation, EscalationId, Label, UrlTarget, call_id
from holdfast.core.approval_text import MAX_SOURCE_CELLS, describe_effect, describe_provenance
from holdfast.core.coverage import Area, Coverage, describe_coverage
from holdfast.services import call_lines, exact_call


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


@pytest.mark.parametrize(("sources", "shown"), [(1, 2 * MAX_SOURCE_CELLS), (2, MAX_SOURCE_CELLS)])
def test_one_source_of_a_value_has_the_room_of_two(sources: int, shown: int) -> None:
    labels = tuple(Label(source="s" * shown) for _ in range(sources))
    escalation = Escalation(
        id=EscalationId("1"),
        call=Call(id=call_id(1, 1), operation="world.read", arguments={}, labels=labels),
        decision=Decision(verdict="escalate", rule="ask", reason="why"),
        digest="",
        tool_digest="",
        policy_digest="",
        opened_ms=0,
    )
    assert describe_provenance(escalation).count("s" * shown + " (not your words)") == sources


def test_a_call_description_is_one_escaped_line() -> None:
    call = Call(
        id=call_id(1, 1),
        operation="world.read\x1b]0;owned\x07\n  allow   fake",
        arguments={"pa\x1b[31mth\n": "x\x1b[2J\ny"},
    )
    expected = describe_call(call)
    assert expected.splitlines() == [expected]
    assert "\x1b" not in expected


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("p\u0430ssword.txt", "p\u0430<U+0430>ssword.txt"),
        ("\u0440\u0430\u0443.txt", "\u0440<U+0440>\u0430<U+0430>\u0443<U+0443>.txt"),
        ("payp\u03b1l.com", "payp\u03b1<U+03B1>l.com"),
        ("\uff41bc", "\uff41<U+FF41>bc"),
        ("\u043f\u0440\u0438\u0432\u0435\u0442.txt", "\u043f\u0440\u0438\u0432\u0435\u0442.txt"),
        ("\u65e5\u672c\u8a9eabc", "\u65e5\u672c\u8a9eabc"),
        ("caf\u00e9", "caf\u00e9"),
    ],
    ids=ascii,
)
def test_f51_letters_that_look_like_others_are_marked(path: str, shown: str) -> None:
    call = Call(id=call_id(1, 1), operation="world.delete", arguments={"path": path})
    assert exact_call(call) == ["world.delete", f"  path: {shown}"]
    assert fit_lines(call_lines(call))[0] == exact_call(call)
    area = Area(kind="path", value=path, argument="path", roles=("delete-path",))
    assert describe_coverage(Coverage(operation="world.delete", areas=(area,))) == (
        f"world.delete on path {shown} (delete-path)"
    )
