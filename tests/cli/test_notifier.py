"""Notifications while the terminal does not have the focus."""

from pathlib import Path

import pytest
from tests.cli.terminals import DELETE, EDITING, TerminalUser, prepared, terminal
from tests.cli.test_approvals import QUESTION, press

from holdfast.cli.terminal.notifier import notification

FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"
REPORT, DO_NOT_REPORT = "\x1b[?1004h", "\x1b[?1004l"
WAITS = "\x1b]99;;Holdfast: a call waits for your approval\x1b\\"
ENDED = "\x1b]99;;Holdfast: the agent waits for you\x1b\\"
KITTY = {"KITTY_WINDOW_ID": "1"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm-kitty"}, "\x1b]99;;text\x1b\\"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "\x1b]9;text\x07"),
        ({"TERM": "foot"}, "\x1b]777;notify;Holdfast;text\x07"),
        ({"TERM": "xterm-256color"}, "\x07"),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/x", "KITTY_WINDOW_ID": "1"}, "\x07"),
    ],
)
def test_each_terminal_is_notified_in_its_own_way(environ: dict[str, str], expected: str) -> None:
    assert notification("text", environ) == expected


def start(user: TerminalUser, *keys: str) -> None:
    assert user.wait_for("/help lists commands")
    assert user.wait_for(EDITING)
    assert user.wait_for(REPORT), "once the editor reads keys, and not before"
    for key in keys:
        user.type(key)
    user.type("remove it\r")


def test_without_the_focus_a_waiting_call_and_the_end_of_the_turn_notify(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Kept."), home=tmp_path, **KITTY) as user:
        start(user, FOCUS_OUT)
        assert user.wait_for(WAITS)
        assert user.wait_for(DO_NOT_REPORT), "a report must not be read as an answer"
        assert user.wait_for(QUESTION)
        press(user, "n", "answer  denied")
        assert user.wait_for(ENDED)
        assert user.end("\x04") == 0
    assert "needs your approval" not in user.seen, "one notification is enough"
    assert user.seen.rfind(DO_NOT_REPORT) > user.seen.rfind(REPORT), "the terminal is left as it was"


@pytest.mark.parametrize("keys", [(), (FOCUS_OUT, FOCUS_IN)])
def test_with_the_focus_nothing_notifies(tmp_path: Path, keys: tuple[str, ...]) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Kept."), home=tmp_path, **KITTY) as user:
        start(user, *keys)
        assert user.wait_for(QUESTION)
        press(user, "n", "answer  denied")
        assert user.wait_for("Kept.")
        assert user.end("\x04") == 0
    assert "\x1b]99" not in user.seen


def test_a_command_of_the_person_gets_the_text_and_off_is_silent(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Kept.")
    (tmp_path / "holdfast").mkdir(mode=0o700)
    config, said = tmp_path / "holdfast" / "config.toml", tmp_path / "said"
    config.write_text(f'notify = "bell"\nnotify_command = ["sh", "-c", \'echo "$1" >> {said}\', "sh"]\n')
    with terminal(*words, home=tmp_path, **KITTY) as user:
        start(user, FOCUS_OUT)
        assert user.wait_for(QUESTION)
        press(user, "n", "answer  denied")
        assert user.wait_for("Kept.")
        while not said.exists() or "the agent waits" not in said.read_text():
            assert user.read(0.1)
        assert user.end("\x04") == 0
    assert said.read_text().splitlines() == [
        "Holdfast: a call waits for your approval",
        "Holdfast: the agent waits for you",
    ]
    assert "\x1b]99" not in user.seen
