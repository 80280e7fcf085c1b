"""The screen of a chat: status line, bell, and the editor without colour."""

import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.terminals import DELETE, at_terminal, prepared, runs, terminal
from tests.cli.test_approvals import QUESTION, press
from tests.cli.test_chat import say, three, wait_for_prompt

from holdfast.cli.chat.activity import Activity
from holdfast.cli.terminal.status_line import status_line
from holdfast.cli.terminal.wrap import fold
from holdfast.core import Limits
from holdfast.guests import script
from holdfast.models import use
from holdfast.testing import memory_session

ANSWERS = {"PROMPT_TOOLKIT_NO_CPR": ""}
"""A terminal that says where its cursor is, as nearly all do."""


async def test_the_status_line_shows_activity_waiting_calls_model_cost_budget_and_context() -> None:
    ask = use("execute_code", {"code": script({"call": "person.ask", "arguments": {"question": "which?"}})})
    async with memory_session([ask], limits=Limits(tokens=50_000, calls=9)) as session:
        activity = Activity()
        session.follow(activity)
        await session.send("write it")
        line = status_line(session, activity, queued=2, mode="ask", window_tokens=100_000)
    amounts = r"turn [\d.k]+ tokens, \$0\.00 · total \$0\.00 · [\d.]+k tokens left · 9 calls left"
    working = r"[|/\\-] \d+s [\w. ]+"
    assert re.fullmatch(
        rf"ask · {working} · 1 waiting for you · 2 queued · scripted:replies · {amounts} · context \d+%", line
    ), line


@pytest.mark.parametrize("columns", [30, 80, 100])
async def test_the_status_line_fits_and_keeps_what_needs_the_person(columns: int) -> None:
    ask = use("execute_code", {"code": script({"call": "person.ask", "arguments": {"question": "which?"}})})
    async with memory_session([ask], limits=Limits(tokens=50_000, calls=9)) as session:
        activity = Activity()
        session.follow(activity)
        await session.send("write it")
        line = status_line(session, activity, queued=2, window_tokens=100_000, columns=columns)
    assert "1 waiting for you" in line
    assert "$0.00" in line
    assert len(line) <= max(columns, 80)  # narrower, what needs the person is still there


def test_the_status_line_is_below_the_editor(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("open('n.txt', 'w').write('new')"), "Written.")
    with terminal(*words, home=tmp_path, **ANSWERS) as user:
        wait_for_prompt(user)
        assert user.wait_for(" ask · scripted:script.json · turn 0 tokens, $0.00 · total $0.00")
        say(user, "write it", "Written.")
        assert user.wait_for("1 staged")


def test_a_waiting_call_rings_the_bell_and_notifies(tmp_path: Path) -> None:
    with at_terminal(three(tmp_path), home=tmp_path, **ANSWERS) as user:
        wait_for_prompt(user)
        user.type("go\r")
        assert user.wait_for(QUESTION)
        assert "\a" in user.seen
        assert "\x1b]9;Holdfast needs your approval\x07" in user.seen


def test_a_call_that_is_not_shown_in_full_cannot_be_approved(tmp_path: Path) -> None:
    policy = "policy: p\nrules:\n  - {name: ask, escalate: world.write, because: look, examples: {matches: [{world.write: {path: a, content: b}}], misses: [{world.read: {path: a}}]}}\n"
    words = prepared(tmp_path, runs("open('n.txt', 'w').write('line\\n' * 200)"), "Written.")
    (tmp_path / "asking.yaml").write_text(policy)
    with terminal(*words, home=tmp_path) as user:
        wait_for_prompt(user)
        say(user, "write it", "too long to show here (v shows everything)")
        assert user.wait_for(QUESTION)
        assert "[y] approve once" not in user.seen
        press(user, "v", "[y] approve once")
        press(user, "n", "answer  denied")


def test_no_color_removes_colour_and_keeps_the_editor_and_its_status_line(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "**Kept.**")
    with terminal(*words, home=tmp_path, NO_COLOR="1", **ANSWERS) as user:
        wait_for_prompt(user)
        say(user, "remove it", QUESTION)
        press(user, "n", "answer  denied")
        assert user.wait_for("Kept.")
        assert user.wait_for("tokens"), "the status line"
    assert "\x1b[?2004h" in user.seen, "the editor"
    assert not re.search(r"\x1b\[[\d;]*(3[0-7]|9[0-7]|38;5)[\d;]*m", user.seen), "no colour"


def test_the_input_history_is_private_and_contains_no_answers(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Hello."), home=tmp_path) as user:
        wait_for_prompt(user)
        say(user, "hello there", "Hello.")
        say(user, "/approve", "no call waits for approval")
        assert user.end("\x04") == 0
    history = tmp_path / "holdfast" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "hello there" in history.read_text()
    assert "/approve" not in history.read_text()


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=300), st.integers(8, 120))
def test_folding_keeps_every_character_and_the_width(text: str, width: int) -> None:
    folded = fold(text, width)
    assert folded.replace(" ", "").replace("\n", "") == text.replace(" ", "")
    assert all(len(line) <= width for line in folded.split("\n")), folded


@pytest.mark.parametrize(
    ("line", "folded"),
    [
        (
            "  why it asks:   one two three four five six seven",
            "  why it asks:   one two three four five\n                 six seven",
        ),
        (
            "  stage   world.write path=/workspace/a.txt content=x",
            "  stage   world.write\n          path=/workspace/a.txt\n          content=x",
        ),
        (
            "  | total = sum(row.price for row in table.rows)",
            "  | total = sum(row.price for row in\n    table.rows)",
        ),
    ],
)
def test_wrapped_text_aligns_after_its_label(line: str, folded: str) -> None:
    assert fold(line, 40) == folded


def test_text_goes_below_a_label_wider_than_half_the_line() -> None:
    assert fold("  why it asks:   one two three four", 24) == "  why it asks:   one two\n  three four"
