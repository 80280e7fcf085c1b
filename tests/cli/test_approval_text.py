"""What a person is asked about is shown to the letter, also what no eye sees."""

import pytest

from holdfast.cli.approval_text import exact_call
from holdfast.core import Call, call_id


@pytest.mark.parametrize("letter", ["\u3164", "\u00a0", "\ufe01", "\U000e0101", "\u202e", "\x1b"])
def test_nothing_in_a_call_hides_from_the_person(letter: str) -> None:
    call = Call(id=call_id(1, 1), operation="mail.send", arguments={"to": f"ann{letter}@example.org"})
    shown = "\n".join(exact_call(call))
    assert letter not in shown
    assert f"ann<U+{ord(letter):04X}>@example.org" in shown


def test_the_name_of_an_argument_cannot_pass_for_another_argument() -> None:
    call = Call(id=call_id(1, 1), operation="mail.send", arguments={"x: 1\n  to": "boss@example.org\n  to: ann"})
    assert exact_call(call) == ["mail.send", "  x: 1<U+000A>  to: boss@example.org", "      to: ann"]
