"""The approval question fits a screen of 24 by 80: what would happen, why, from where, the call, and the keys."""

import io
import re
from collections.abc import Sequence

import msgspec
import pytest

from holdfast.cli.approvals.text import choices, lengths
from holdfast.cli.approvals.view import show_choices, show_escalation
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.wrap import cell_width
from holdfast.core import (
    Call,
    CommandTarget,
    Coverage,
    Decision,
    Escalation,
    EscalationId,
    JsonObject,
    Label,
    Location,
    Offer,
    PathTarget,
    Role,
    Target,
    UrlTarget,
    call_id,
)
from holdfast.core.approval_text import describe_call_lines, describe_effect, describe_facts, visible
from holdfast.mcp.proxy.approvals import describe

ROWS, COLUMNS = 24, 80
NOW_MS = 1_000_000


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "80", "LINES": "24", "NO_COLOR": "1", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)


def path(name: str, role: Role = "write-path") -> PathTarget:
    return PathTarget(role=role, argument="path", location=Location(given=name, real=name))


def asked(
    operation: str, arguments: JsonObject, *targets: Target, because: str = "because it matters " * 60
) -> Escalation:
    sources = ["web.fetch https://example.org/" + "x" * 200, "src/" + "y" * 200, "the person", "a", "b"]
    return Escalation(
        id=EscalationId("1"),
        call=Call(
            id=call_id(1, 1),
            operation=operation,
            arguments=arguments,
            labels=tuple(Label(source=each) for each in sources),
        ),
        decision=Decision(
            verdict="escalate", rule="ask", reason=because, source="/home/someone/" + "z" * 100 + "/p.yaml:12"
        ),
        digest="",
        tool_digest="",
        policy_digest="",
        opened_ms=0,
        expires_ms=NOW_MS + 240_000,
        targets=targets,
        offers=(Offer(coverage=Coverage(operation=operation)),),
    )


def shown(escalation: Escalation, *, waiting: Sequence[Escalation] = ()) -> tuple[list[str], bool]:
    """The rows of the question at the terminal, without the empty one above it, and whether the call is there in full."""
    screen = _Screen()
    console = Console(err=screen)
    is_whole = show_escalation(console, escalation, now_ms=NOW_MS, waiting=waiting)
    offered = choices(escalation, is_whole=is_whole, is_edited=False)
    show_choices(console, offered, how="press a key", number=2, waiting=len(waiting))
    rows: list[str] = []
    lines = screen.getvalue().removesuffix("\n").split("\n")
    for line in lines[not lines[0] :]:
        rows += [line] * max(1, -(-cell_width(line) // COLUMNS))
    return rows, is_whole


LONG = "/srv/" + "/".join(["folder"] * 60)
WIDE = "/srv/" + "\u65e5\u672c\u8a9e" * 80
CASES = {
    "a long path": asked("world.write", {"path": LONG, "content": "x"}, path(LONG)),
    "wide letters": asked("world.write", {"path": WIDE[:200], "content": "x"}, path(WIDE)),
    "letters that look like others": asked("world.delete", {"path": "\u0430a" * 40}, path("\u0430a" * 200)),
    "two paths": asked("world.move", {"source": "a", "destination": "b"}, path(LONG, "read-path"), path(WIDE)),
    "fifty paths": asked("files.read", {"paths": ["a"] * 50}, *(path(f"/a/{n}") for n in range(50))),
    "eleven lines": asked("world.write", {"path": "a", "content": "line\n" * 8 + "line"}, path("/w/a")),
    "twelve rows": asked("world.write", {"content": "line\n" * 10 + "line"}, path(LONG)),
    "one line of 600 characters": asked("mail.send", {"text": "word " * 120}),
    "an MCP tool": asked("github.create_issue", {"owner": "o", "repo": "r", "title": "t", "body": "b\n" * 5}),
    "a short reason": asked("time.now", {"zone": "UTC"}, because="it matters"),
    "a file that programs run": asked("world.write", {"path": "Makefile", "content": "all:"}, path("/w/Makefile")),
    "a command": asked(
        "shell.run",
        {"argv": ["git", "log"], "cwd": "."},
        CommandTarget(role="command", argument="argv", words=("git", "log", "x" * 300)),
    ),
    "a script": asked(
        "shell.run",
        {"script": "for a in *; do\n  eval $a\ndone"},
        CommandTarget(role="command", argument="script", words=("eval",), is_opaque=True),
    ),
    "a connection": asked(
        "net.connect",
        {"host": "example.org", "port": 443},
        UrlTarget(role="proxy-domain", argument="host", given="https://example.org:443", host="example.org"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_f15_every_call_of_up_to_twelve_rows_is_shown_in_full_on_a_screen_of_24_by_80(name: str) -> None:
    rows, is_whole = shown(CASES[name])
    assert is_whole
    assert len(rows) < ROWS, "and the cursor has a row"
    assert rows[0].startswith("  The agent wants to "), "what would happen is said once, above the call"
    assert sum(row.startswith("  The agent wants to ") for row in dict.fromkeys(rows)) == 1
    assert any(row.startswith("  time left:     4m, then it is denied") for row in rows)


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "line\n" * 200},
        {"content": "x" * 100_000},
        {"content": "\u65e5" * 5_000},
        {"content": ("x" * 75 + "\n") * 12},
        {"content": "a\n" * 10 + "x" * 80},
        {str(number): number for number in range(12)},
    ],
    ids=[
        "many lines",
        "one long line",
        "wide letters",
        "thirteen rows",
        "twelve and one",
        "thirteen arguments",
    ],
)
def test_f15_a_longer_call_is_cut_to_the_screen_and_cannot_be_approved_before_it_is_seen(
    arguments: JsonObject,
) -> None:
    rows, is_whole = shown(asked("world.write", arguments, path(LONG)))
    assert not is_whole
    assert len(rows) < ROWS
    assert any("too long to show here (v shows everything)" in row for row in rows)
    assert not any("[y]" in row for row in rows)


@pytest.mark.parametrize("count", [2, 3, 9, 200])
@pytest.mark.parametrize("name", CASES)
def test_several_waiting_calls_fit_the_screen_with_the_question(name: str, count: int) -> None:
    current = CASES[name]
    others = [msgspec.structs.replace(current, id=EscalationId(f"other{number}")) for number in range(count)]
    waiting = [*others[1:2], current, *others[2:]]
    rows, is_whole = shown(current, waiting=waiting)
    assert is_whole
    assert len(rows) < ROWS
    text = "\n".join(rows)
    if "marked *" in text:
        listed = [row for row in rows if re.match(r"  [* ] \d+  The agent", row)]
        assert any(row.startswith("  * 2  ") for row in listed)
        left_out = len(waiting) - len(listed)
        assert (f"and {left_out} more: holdfast waiting" in text) == (left_out > 0)
    assert rows[-1] == f"  press a key; call 2 of {len(waiting)} that wait: /approve N, or holdfast waiting"


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("how", ["press a key", "type a key and Enter"])
def test_f15_the_keys_and_how_to_answer_take_one_line_each(is_whole: bool, how: str) -> None:
    screen = _Screen()
    offered = choices(CASES["a long path"], is_whole=is_whole, is_edited=False)
    show_choices(Console(err=screen), offered, how=how)
    lines = screen.getvalue().splitlines()
    assert len(lines) == 2
    assert all(cell_width(line) < COLUMNS for line in lines)


@pytest.mark.parametrize("how", ["press a key", "type a key and Enter"])
def test_the_lengths_of_a_saved_approval_take_one_line(how: str) -> None:
    screen = _Screen()
    show_choices(Console(err=screen), [*lengths(), ("b", "back")], how=how)
    assert [cell_width(line) < COLUMNS for line in screen.getvalue().splitlines()] == [True, True]


def test_a_connection_cannot_be_edited() -> None:
    keys = [key for key, _ in choices(CASES["a connection"], is_whole=True, is_edited=False)]
    assert keys == ["y", "a", "n", "r", "?"]


@pytest.mark.parametrize("name", ["a short reason", "a command", "a connection"])
def test_the_terminal_and_mcp_elicitation_use_the_same_words(name: str) -> None:
    asked_about = CASES[name]
    at_terminal = io.StringIO()
    show_escalation(Console(err=at_terminal), asked_about, now_ms=NOW_MS)
    words = [describe_effect(asked_about), *describe_facts(asked_about)]
    call = [visible(line).strip() for line in describe_call_lines(asked_about.call)]
    for shown_there in (at_terminal.getvalue(), describe(asked_about)):
        lines = [line.strip() for line in shown_there.splitlines()]
        assert [each for each in [*words, *call] if each not in lines] == []
