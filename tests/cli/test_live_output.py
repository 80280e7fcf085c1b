"""The live region of the chat shows what the running program prints, and nothing of the one before."""

from holdfast.cli.chat.folded import CommandOutputView
from holdfast.core.events import CommandEnded, CommandStarted, Event, RecordedEvent
from holdfast.core.ids import CallId, SessionId


def recorded(event: Event) -> RecordedEvent:
    return RecordedEvent(SessionId("s"), 1, 0, event, b"")


def test_the_output_of_a_program_leaves_the_screen_with_its_end() -> None:
    shown: list[str] = []
    view = CommandOutputView(shown.append)
    view("one\n")
    view.follow(recorded(CommandStarted(call=CallId("1"))))
    view.follow(recorded(CommandEnded(call=CallId("1"))))
    view.follow(recorded(CommandEnded(call=CallId("2"))))
    view("two\n")
    assert shown == ["one\n", "", "two\n"]


def test_a_line_that_a_terminal_ended_is_shown_as_a_line() -> None:
    shown: list[str] = []
    view = CommandOutputView(shown.append)
    view("one\r")
    view("\ntwo\r\n")
    assert shown[-1] == "one\ntwo\n"
