"""Every slash command, typed at a real terminal."""

import json
import re
from pathlib import Path

from tests.cli.commands import holdfast
from tests.cli.terminals import DELETE, TerminalUser, prepared, runs, terminal

from holdfast.cli.chat.slash import COMMANDS
from holdfast.cli.command_list import CHAT_COMMANDS
from holdfast.cli.command_list import COMMANDS as OUTSIDE

WRITE = runs("open('n.txt', 'w').write('new\\n')", text="I write it.")
TYPED = (
    ("/copy", "copied 8 characters"),
    ("/export out.zip", "wrote out.zip"),
    ("/diff", "+new"),
    ("/unfold", "ran 1 line of code"),
    ("/why", "stage by rule stage-writes"),
    ("/why 1.1", "stage by rule stage-writes"),
    ("/reveal", "nothing is kept from the model"),
    ("/reveal out_1_1", "there is no hidden output"),
    ("/logs", "1.1 stage world.write path=/workspace/n.txt"),
    ("/accept", "no commits are offered"),
    ("/status", "programs: none"),
    ("/mode", "ask; switch with /mode"),
    ("/go", "there is no plan to carry out"),
    ("/preview 8000", "cannot run programs"),
    ("/cost", "1 call"),
    ("/budget", "iterations"),
    ("/commit", "commit  n.txt"),
    ("/files", "n.txt"),
    ("/reject", "nothing is staged"),
    ("/review", "nothing is staged"),
    ("/diff -p", "nothing is staged"),
    ("/commit -p", "nothing is staged"),
    ("/rewind", "/rewind N previews a rewind"),
    ("/rewind 0", "would be deleted   n.txt"),
    ("/rewind 0 go", "rewound to the end of turn 0"),
    ("/rename my session", "renamed to my-session"),
    ("/sessions", "my-session"),
    ("/resume my-session", "this is the current session"),
    ("/grants", "no saved approvals"),
    ("/model", "switch with /model PROVIDER:NAME"),
    ("/policy ask-always", "policy: ask-always"),
    ("/policy", "ask-always; switch with /policy NAME"),
    ("/compact", "nothing"),
    ("/nonsense", "unknown command /nonsense"),
    ("/approve", "no call waits for approval"),
    ("/approve all", "no call waits for approval"),
    ("/deny", "no call waits for approval"),
    ("/help", "replace older turns with a summary"),
    ("/fork again", "no finished turn to fork"),
    ("/merge", "is not a fork"),
    ("/undo", "there is no turn to undo"),
    ("/budget \x1b\r/grants", "these are several commands; nothing was done"),
)
LEAVING = ("/quit", "/exit")


def say(user: TerminalUser, line: str, expected: str) -> None:
    """Type a line and wait for its effect."""
    user.type(f"{line}\r")
    assert user.wait_for(expected), f"{line}: {user.seen[-2000:]}"


def test_every_command_does_what_it_says(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, WRITE, "Written."), home=tmp_path) as user:
        assert user.wait_for("/help")
        say(user, "write it", "1 staged (/diff")
        for line, expected in TYPED:
            say(user, line, expected)
        assert not (tmp_path / "work" / "n.txt").exists(), "the rewind took the file away again"
        user.type("/quit\r")
        assert user.end() == 0
    assert {line.split()[0] for line, _ in TYPED} - {"/nonsense"} == COMMANDS.keys() - set(LEAVING)


def test_quotes_keep_the_spaces_of_a_name(tmp_path: Path) -> None:
    writes = runs("for name in ('my file', 'it', 'Makefile'): open(name, 'w').write(name)")
    with terminal(*prepared(tmp_path, writes, "Written."), home=tmp_path) as user:
        assert user.wait_for("/help")
        say(user, "write it", "3 staged (/diff")
        say(user, '/diff "my file"', "+++ b/my file")
        say(user, "/reject 'my file'", "reject  my file")
        say(user, '/export "to keep.zip"', "wrote to keep.zip")
        say(user, "/commit it", "commit  it")
        assert user.end("\x04") == 0
    assert (tmp_path / "to keep.zip").exists()
    assert "+++ b/it" not in user.seen


def test_an_export_that_cannot_be_signed_says_so(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Hello."), home=tmp_path) as user:
        assert user.wait_for("/help")
        (tmp_path / "holdfast" / "export-key").write_bytes(b"short")
        say(user, "hi", "Hello.")
        say(user, "/export out.zip", "not signed, so an import counts it as a stranger's")
        assert user.end("\x04") == 0
    assert (tmp_path / "out.zip").exists()


def test_the_log_shows_messages_runs_calls_and_outcomes(tmp_path: Path) -> None:
    words = prepared(tmp_path, WRITE, "Written.", "Nothing to do.")
    with terminal("--plain", *words, home=tmp_path) as user:
        assert user.wait_for("/help")
        for line in ("/logs", "write it", "and now?"):
            user.type(f"{line}\n")
            assert user.wait_for("the log is empty" if line == "/logs" else "ready")
        user.type("/logs\n")
        assert user.wait_for("turn    2 ")
        assert user.end("\x04") == 0
    log = re.findall(r"^  \d\d:\d\d:\d\d  (.*)\r$", user.seen, re.MULTILINE)
    expected = [re.sub(r"[\d.,]+ (tokens in|out|ms|s)\b", r"N \1", line) for line in log]
    assert expected == [
        "you     turn 1: write it",
        "model   step 1, N tokens in, N out: I write it.",
        "run     in python: open('n.txt', 'w').write('new\\n')",
        "call    1.1 stage world.write path=/workspace/n.txt content=new\\n",
        "call    1.1 ok after N ms",
        "run     ok",
        "model   step 2, N tokens in, N out: Written.",
        "turn    1 staged, not committed: n.txt, N s",
        "you     turn 2: and now?",
        "model   step 1, N tokens in, N out: Nothing to do.",
        "turn    2 done, N s",
    ]


def test_a_fork_continues_the_chat_and_leaves_the_original_unchanged(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "One.", "Two."), "-n", "first", home=tmp_path) as user:
        assert user.wait_for("/help")
        say(user, "hello", "One.")
        say(user, "/fork second", "which works in its own copy of the files")
        say(user, "go on", "Two.")
        say(user, "/rewind", "  2  go on")
        user.type("/exit\r")
        assert user.end() == 0
    found = {
        each["name"]: each["turns"]
        for each in json.loads(holdfast("sessions", "--json", home=tmp_path).stdout)
    }
    assert found == {"first": 1, "second": 2}


def test_a_fork_is_refused_while_a_call_waits(tmp_path: Path) -> None:
    with terminal("--plain", *prepared(tmp_path, DELETE, "Kept."), home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("remove it\n")
        assert user.wait_for("type a key and Enter")
        for _ in range(30):  # what is typed before the question could be read does not count
            user.type("/fork\n")
            if user.wait_for("a turn is running", seconds=2):
                break
        else:
            raise AssertionError(user.seen)
        assert user.end("\x04") == 0


def test_every_command_of_a_chat_alone_is_recognised_outside_it() -> None:
    assert {name.removeprefix("/") for name in COMMANDS} - {*OUTSIDE, "help"} == CHAT_COMMANDS


def test_the_help_of_a_chat_fits_80_columns() -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    assert max(2 + width + 2 + len(command.description) for command in COMMANDS.values()) <= 80
