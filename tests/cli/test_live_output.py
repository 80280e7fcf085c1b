"""The live region of the chat shows what the running program prints, and nothing of the one before."""

from holdfast.cli.chat.folded import CommandOutputView, RunView
from holdfast.cli.terminal.program_output import ProgramOutput
from holdfast.core.events import CommandEnded, CommandStarted, Event, RecordedEvent, RunEnded, RunStarted
from holdfast.core.ids import CallId, SessionId

BAR = [
    "\x1b[1mbuild\x1b[0m\n\r\x1b[3",
    "2m 50%\x1b[0m |#    |",
    "\r\x1b[32m100%\x1b[0m |#####|\r",
    "\ndone\n",
]


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


def test_the_output_of_a_program_that_was_cut_off_is_not_shown_with_the_next() -> None:
    shown: list[str] = []
    view = CommandOutputView(shown.append)
    view("one\n")
    view.clear()
    view("two\n")
    assert shown == ["one\n", "", "two\n"]


def test_a_line_that_a_terminal_ended_is_shown_as_a_line() -> None:
    shown: list[str] = []
    view = CommandOutputView(shown.append)
    view("one\r")
    view("\ntwo\r\n")
    assert shown[-1] == "one\ntwo\n"


def test_a_progress_bar_is_shown_as_one_line_that_changes() -> None:
    shown: list[str] = []
    view = CommandOutputView(shown.append)
    for piece in BAR:
        view(piece)
    assert shown[1] == "build\n 50% |#    |"
    assert shown[2] == "build\n100% |#####|"
    assert shown[3] == "build\n100% |#####|\ndone\n"


def test_a_command_of_the_person_says_how_often_a_line_overwrote_itself() -> None:
    said: list[str] = []
    live: list[str] = []
    output = ProgramOutput(said.append, live=live.append)
    for piece in BAR:
        output(piece)
    output.end()
    assert said == ["  | build", "  | 100% |#####| (after 1 earlier state of this line)", "  | done"]
    assert live[1:] == [" 50% |#    |", "100% |#####|", ""]


def test_a_line_of_returns_costs_as_little_as_any_other() -> None:
    said: list[str] = []
    output = ProgramOutput(said.append, live=lambda _: None)
    output("x" + "\r" * 1_000_000 + "y\r\n")  # takes minutes if the work grows with the square
    assert said == ["  | y (after 1 earlier state of this line)"]


def folded_text(*, printed: str, output: str) -> str:
    folds: list[str] = []
    view = CommandOutputView(lambda _: None)
    run = RunView(
        live=lambda _: None, fold=lambda _, text: folds.append(text), take_output=view.take, after=0
    )
    code = "shell.run(['make'])"
    run(recorded(RunStarted(turn=1, run=1, code=code, engine="python", first_call=1, seed=0, started_ms=0)))
    view(output)
    view.follow(recorded(CommandEnded(call=CallId("1"))))
    run(recorded(RunEnded(turn=1, run=1, printed=printed, status="ok")))
    return folds[0]


def test_what_a_program_printed_is_folded_with_the_code_that_ran_it() -> None:
    text = folded_text(printed="", output="compiled\n")
    assert text == "shell.run(['make'])\n--- programs printed ---\ncompiled"


def test_output_that_the_code_printed_is_folded_once() -> None:
    text = folded_text(printed="compiled\n", output="compiled\n")
    assert text == "shell.run(['make'])\n--- printed ---\ncompiled\n"


def test_a_run_that_is_stopped_is_folded_with_what_its_program_printed_so_far() -> None:
    folds: list[tuple[str, str]] = []
    view = CommandOutputView(lambda _: None)
    run = RunView(
        live=lambda _: None,
        fold=lambda title, text: folds.append((title, text)),
        take_output=view.take,
        after=0,
    )
    run(recorded(RunStarted(turn=1, run=1, code="f()", engine="python", first_call=1, seed=0, started_ms=0)))
    view("half\n")
    view.end()
    run.cut_off()
    run.cut_off()
    assert folds == [("ran 1 line of code (python): stopped", "f()\n--- programs printed ---\nhalf")]
