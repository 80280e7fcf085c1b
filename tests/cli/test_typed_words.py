"""How a chat shows what started a turn."""

from holdfast.cli.chat.welcome import as_typed
from holdfast.session import TurnRecord


def test_a_command_is_shown_with_its_mark_and_other_words_as_they_are() -> None:
    command = TurnRecord(number=1, asked="echo  five", is_code=True, language="shell", began_ms=0)
    code = TurnRecord(number=2, asked="print(1)", is_code=True, language="python", began_ms=0)
    message = TurnRecord(number=3, asked="hello\nthere", began_ms=0)
    assert [as_typed(each) for each in (command, code, message)] == ["!echo five", "print(1)", "hello there"]
