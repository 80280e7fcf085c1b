"""The line editor at a real terminal: pasting, resizing, searching and suspending."""

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.commands import holdfast
from tests.cli.terminals import DELETE, TerminalUser, at_terminal, let_code_run, prepared, runs, terminal
from tests.cli.test_approvals import QUESTION, press
from tests.support.provider_stub import Hang, StubServer

PASTED = "\x1b[200~{}\x1b[201~"
STATUS_LINE = {"PROMPT_TOOLKIT_NO_CPR": "0"}
"""The status line appears at a terminal that reports its cursor position, as nearly all do."""
READY = "\x1b[?2004h"
"""The editor sends this when it starts to read a line."""


def asked(home: Path) -> list[str]:
    """Every message that was sent."""
    events = json.loads(holdfast("show", "--json", home=home).stdout)["events"]
    return [each["event"]["text"] for each in events if each["event"]["event"] == "message-posted"]


def test_pasted_lines_are_one_message_and_nothing_in_them_is_a_command(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Read.", "Never."), home=tmp_path) as user:
        assert user.wait_for(READY)
        user.type(PASTED.format("first\n/quit\n日本語 🪢 last"))
        assert user.wait_for("last")
        assert "Read." not in user.seen, "nothing is sent before Enter"
        user.type("\r")
        assert user.wait_for("Read.")
        assert user.end("\x04") == 0
    assert asked(tmp_path) == ["first\n/quit\n日本語 🪢 last"]


def test_lines_pasted_into_a_terminal_that_does_not_mark_pastes_are_one_message(tmp_path: Path) -> None:
    lines = [
        "first",
        "/quit",
        *(f"{number} of the many lines of a long paste" for number in range(120)),
        "last",
    ]
    with terminal(*prepared(tmp_path, "Read.", "Never."), home=tmp_path) as user:
        assert user.wait_for(READY)
        user.type("see: " + "\r".join(lines) + "\r")
        assert user.wait_for("Enter sends them as one message")
        assert "Read." not in user.seen, "nothing is sent before Enter"
        user.type("\r")
        assert user.wait_for("Read.")
        assert user.end("\x04") == 0
    assert asked(tmp_path) == ["see: " + "\n".join(lines)]


def test_a_completed_name_with_spaces_is_attached(tmp_path: Path) -> None:
    words = prepared(tmp_path, "Read.")
    (tmp_path / "work" / "two words").mkdir()
    (tmp_path / "work" / "two words" / "a b.txt").write_text("spaced\n")
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for(READY)
        user.type("see @tw")
        user.wait_for_row("  two words/")
        user.type("\t")
        user.wait_for_row("  two words/a b.txt")
        user.type("a")
        user.wait_for_row('> see @"two words/a')
        user.type("\t")
        user.wait_for_row('> see @"two words/a b.txt"')
        user.type("\r")
        assert user.wait_for("attached two words/a b.txt (7 bytes")
        assert user.wait_for("Read.")
        assert user.end("\x04") == 0


def test_tab_enters_a_folder_that_is_the_only_completion(tmp_path: Path) -> None:
    words = prepared(tmp_path, "Read.")
    (tmp_path / "work" / "one" / "two").mkdir(parents=True)
    (tmp_path / "work" / "one" / "two" / "a.txt").write_text("deep\n")
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for(READY)
        user.type("see @on")
        for offered in ("  one/", "  one/two/", "  one/two/a.txt"):
            user.wait_for_row(offered)
            user.type("\t")
        user.wait_for_row("> see @one/two/a.txt")
        user.type("\r")
        assert user.wait_for("attached one/two/a.txt (5 bytes")
        assert user.end("\x04") == 0


def test_tab_completes_a_name_whose_letters_arrive_with_it(tmp_path: Path) -> None:
    words = prepared(tmp_path, "Read.")
    for name in ("one/two/a.txt", "trees/oak.txt", "trees/olive.txt"):
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_text("deep\n")
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for(READY)
        user.type("see @on\tt\ta\t")
        user.wait_for_row("> see @one/two/a.txt")
        user.type(" and @tr\to\t")
        user.wait_for_row("  trees/olive.txt")
        user.type("l\t")
        user.wait_for_row("> see @one/two/a.txt and @trees/olive.txt")
        user.type("\r")
        assert user.wait_for("attached trees/olive.txt (5 bytes")
        assert user.end("\x04") == 0


def test_a_line_entered_while_an_answer_arrives_does_not_show_the_answer_twice(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with hanging_model(tmp_path, "so far so good") as spec:
        words = ("-w", "work", "--trust", "-m", spec)
        with terminal(*words, home=tmp_path, HOLDFAST_SERVER_KEY="stub-key") as user:
            assert user.wait_for(READY)
            user.type("go\r")
            user.wait_for_row("so far so good")
            user.type("/policy\r")
            user.wait_for_row("names: ask-always")
            user.type("\x03")
            shown = user.wait_for_row("stopped; completed actions")
    assert sum("so far so good" in row for row in shown) == 1, "\n".join(shown)


@contextmanager
def hanging_model(home: Path, text: str) -> Iterator[str]:
    """A model that starts to answer and never ends."""
    loop, over = asyncio.new_event_loop(), asyncio.Event()
    spec: list[str] = []
    is_ready = threading.Event()

    async def serve() -> None:
        async with StubServer([Hang(text=text)]) as stub:
            spec.append(f"server:{stub.url}/v1#any")
            is_ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert is_ready.wait(60)
        yield spec[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def test_resizing_the_window_keeps_typed_text(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Read.", "Never."), home=tmp_path) as user:
        assert user.wait_for(READY)
        user.type("before ")
        assert user.wait_for("before")
        for rows, columns in ((10, 30), (24, 80), (60, 200)):
            user.resize(rows, columns)
            user.type(f"{columns} ")
            assert user.wait_for(str(columns))
        user.type("after\r")
        assert user.wait_for("Read.")
        assert user.end("\x04") == 0
    assert asked(tmp_path) == ["before 30 80 200 after"]


def test_history_search_finds_messages_but_no_answers(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "One.", "Two.", "Three.", "Four."), home=tmp_path) as user:
        assert user.wait_for(READY)
        for line, expected in (
            ("look at the parser", "One."),
            ("/approve", "no call waits for approval"),
            ("thanks", "Two."),
        ):
            user.type(f"{line}\r")
            assert user.wait_for(expected)
            assert user.wait_for(READY)
        user.type("\x12pars")
        assert user.wait_for("look at the ")
        user.type("\r\r")
        assert user.wait_for("Three.")
        assert user.wait_for(READY)
        user.type("\x12thank")
        assert user.wait_for("reverse-i-search")
        user.type("\x03")  # leaves the search
        user.type("typed after it\r")
        assert user.wait_for("Four.")
        assert user.end("\x04") == 0
    assert asked(tmp_path) == ["look at the parser", "thanks", "look at the parser", "typed after it"]
    assert "/approve" not in (tmp_path / "holdfast" / "history").read_text()


def test_ctrl_c_clears_an_idle_line_but_keeps_it_while_stopping_a_turn(tmp_path: Path) -> None:
    words = prepared(
        tmp_path, runs("world.write(path='n.txt', content='x')\nwhile True: pass"), "Here.", "Never."
    )
    let_code_run(tmp_path)
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for(READY)
        user.type("thrown away\x03")
        user.type("spin\r")
        assert user.wait_for("stage   world.write")
        user.type("kept")
        assert user.wait_for("kept")
        user.type("\x03")
        assert user.wait_for("stopped; completed actions are not undone")
        user.type(" and sent\r")
        assert user.wait_for("Here.")
        assert user.end("\x04") == 0
    assert asked(tmp_path) == ["spin", "kept and sent"]


def test_idle_ctrl_c_prints_how_to_quit_and_quitting_prints_how_to_resume(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "One."), "-n", "books", home=tmp_path) as user:
        assert user.wait_for(READY)
        user.type("\x03")
        assert user.wait_for("no turn is running; Ctrl-D quits")
        user.type("hello\r")
        assert user.wait_for("One.")
        assert user.wait_for(READY)
        user.type("/quit\r")
        assert user.wait_for("resume with: holdfast -r books")
        assert user.end() == 0


def test_the_status_line_is_idle_after_compact(tmp_path: Path) -> None:
    with terminal(
        *prepared(tmp_path, "One.", "Two.", "Three.", "Never."), home=tmp_path, **STATUS_LINE
    ) as user:
        assert user.wait_for(READY)
        for line, expected in (
            ("a", "One."),
            ("b", "Two."),
            ("c", "Three."),
            ("/compact", "summarized: One."),
        ):
            user.type(f"{line}\r")
            assert user.wait_for(expected)
        assert user.wait_for(READY)
        before = len(user.seen)
        user.type("draft")
        assert user.wait_for("draft")
        user.resize(30, 100)
        assert user.wait_for("tokens")
        assert "waiting for the model" not in user.seen[before:]
        assert user.end("\x15\x04") == 0


def suspended(user: TerminalUser) -> None:
    """Press Ctrl-Z and use the shell."""
    user.type("\x1a")
    assert user.wait_for("Stopped"), user.seen
    user.type("echo in the $((1 + 1))nd shell; fg\r")
    assert user.wait_for("in the 2nd shell"), user.seen


def test_suspending_returns_to_the_edited_line_and_to_the_question(tmp_path: Path) -> None:
    words = " ".join((sys.executable, "-m", "holdfast", *prepared(tmp_path, DELETE, "Gone.")))
    with at_terminal(["bash", "--norc", "-i"], home=tmp_path, PS1="shell> ") as user:
        user.type(f"{words}\r")
        assert user.wait_for("/help")
        assert user.wait_for(READY)
        user.type("remove ")
        assert user.wait_for("remove")
        suspended(user)
        assert user.wait_for("remove"), "the line is as it was left"
        user.type("it\r")
        assert user.wait_for(QUESTION)
        suspended(user)
        assert user.wait_for(QUESTION), "it is put again"
        assert (tmp_path / "work" / "a.txt").exists()
        press(user, "y", "answer  approved (once), by terminal")
        assert user.wait_for("Gone.")
        assert user.wait_for(READY)
        user.type("/quit\r")
        assert user.wait_for("shell> ")
        assert "the turn is unfinished" not in user.seen
        user.type("exit 7\r")
        assert user.end() == 7
    assert asked(tmp_path) == ["remove it"]


def test_a_long_call_is_folded_so_that_its_effect_stays_on_the_screen(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("open('n.txt', 'w').write('line\\n' * 30)"), "Kept.")
    policy = (tmp_path / "asking.yaml").read_text().replace("stage: world.write", "escalate: world.write")
    (tmp_path / "asking.yaml").write_text(policy)
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("write it\r")
        assert user.wait_for(QUESTION)
        assert user.seen.count("The agent wants to write") == 1
        assert "too long to show here (v shows everything)" in user.seen
        press(user, "n", "Kept.")


def test_a_run_stopped_at_a_limit_names_it(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("print('x' * 1_000_000)"), "Too much.")
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("print\r")
        assert user.wait_for("Too much.")
    expected = user.seen[user.seen.index("  limit   ") :]
    assert "printed more than" in expected.split("The run was stopped")[0]


def test_alt_enter_works_while_the_editor_is_suspended(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Here."), home=tmp_path) as user:
        assert user.wait_for(READY)
        user.type("first\x1b\nsecond\r")  # as a terminal hands it over that reads whole lines at that moment
        assert user.wait_for("Here.")
        assert user.end("\x04") == 0
    assert asked(tmp_path) == ["first\nsecond"]


def test_what_is_typed_while_the_session_opens_is_shown_in_the_prompt_alone(tmp_path: Path) -> None:
    words = prepared(tmp_path)
    script = tmp_path / "script.json"
    script.unlink()
    os.mkfifo(script)
    with terminal(*words, home=tmp_path) as user:
        with script.open("w") as replies:  # waits until the session, which is being opened, reads them
            user.type("typed early")
            replies.write('["Heard."]')
        assert user.wait_for(READY)
        assert "typed early" not in user.seen[: user.seen.index(READY)]
        assert user.wait_for("typed early")
        user.type("\r")
        assert user.wait_for("Heard.")
        assert user.end("\x04") == 0
    assert asked(tmp_path) == ["typed early"]


def test_ctrl_d_is_kept_while_the_editor_is_interrupted_to_print_a_line(tmp_path: Path) -> None:
    program = (
        "import os, signal, tty\n"
        "from holdfast.cli.terminal.line_editor import _keep_typed_input\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
        "_keep_typed_input(True)\n"
        "print('ready', flush=True)\n"
        "signal.sigwait({signal.SIGUSR1})\n"
        "tty.setraw(0, tty.TCSANOW)\n"  # as the editor does when it continues
        "print('read', os.read(0, 9), flush=True)\n"
        "_keep_typed_input(False)\n"
    )
    with at_terminal([sys.executable, "-c", program], home=tmp_path) as user:
        assert user.wait_for("ready")
        user.type("\x04")
        user.process.send_signal(signal.SIGUSR1)
        assert user.wait_for(r"read b'\x04'")
