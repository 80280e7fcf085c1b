"""Common mistakes: each one is reported with an error, a hint and the right exit code."""

import json
from pathlib import Path

import pytest
from tests.cli.commands import Run, holdfast, holdfast_process, run
from tests.cli.terminals import DELETE, prepared, terminal

__all__ = ["run"]

MISTAKES = (
    ("sesions", 2, "there is no command 'sesions'", "hint: holdfast sessions"),
    ("sesions --here", 2, "there is no command 'sesions'", "hint: holdfast sessions"),
    ("polcy show", 2, "there is no command 'polcy'", "hint: holdfast policy"),
    ("list", 2, "there is no command 'list'", "hint: holdfast sessions; if it is a task for the agent"),
    ("ls --here", 2, "there is no command 'ls'", "hint: holdfast sessions"),
    ("history", 2, "there is no command 'history'", "hint: holdfast sessions"),
    ("dashboard", 2, "there is no command 'dashboard'", "hint: holdfast web"),
    ("help list", 2, "there is no command 'list'", "hint: holdfast help sessions"),
    ("help polcy", 2, "there is no command 'polcy'", "hint: holdfast help policy"),
    ("help me", 2, "there is no command 'me'", "hint: holdfast help"),
    (
        "undo",
        2,
        "there is no command 'undo'",
        "hint: in a chat: /undo; if it is a task for the agent: holdfast -- undo",
    ),
    ("--jsn hi", 2, "unrecognized arguments: --jsn", "hint: did you mean --json?"),
    ("policy show --jsn", 2, "unrecognized arguments: --jsn", "hint: did you mean --json?"),
    ("-x", 2, "unrecognized arguments: -x", "hint: holdfast --help shows examples"),
    ("-m nosuch:model hi", 2, "is not the name of a model", "hint: use one of anthropic:NAME"),
    ("-m scripted:none.json hi", 2, "is not a script", "hint: write a JSON list"),
    (
        "-m scripted:four.json -w nowhere hi",
        2,
        "'nowhere' is not a folder",
        "hint: give the path of an existing folder",
    ),
    (
        "-m scripted:four.json -w a-file hi",
        2,
        "'a-file' is not a folder",
        "hint: give the path of an existing folder",
    ),
    (
        "-m scripted:four.json -w / hi",
        2,
        "contains Holdfast's data directory",
        "hint: open the folder of one",
    ),
    ("-m scripted:four.json -w folder hi", 2, "is not trusted yet", "pass --trust once"),
    (
        "-m scripted:four.json -p nosuch hi",
        2,
        "there is no policy named 'nosuch'",
        "hint: list the named policies",
    ),
    ("-m scripted:four.json -p broken.yaml hi", 2, "broken.yaml:3:4: is not valid YAML", "hint: "),
    (
        "-m scripted:four.json --budget usd=many hi",
        2,
        "is not a quantity of usd",
        "hint: a number of US dollars",
    ),
    ("-m scripted:four.json --sandbox docker hi", 2, "invalid choice: 'docker'", "hint: holdfast --help"),
    ("-r nosuch", 1, "there is no session 'nosuch'", "`holdfast sessions` lists all sessions"),
    ("-c", 1, "no session was started in this folder", "hint: see: holdfast sessions"),
    ("-c -r books", 2, "-c and -r cannot be combined", "hint: -c resumes the last session"),
    ("-r -c", 2, "-c and -r cannot be combined", "hint: -c resumes the last session"),
    ("policy chek", 2, "invalid choice: 'chek'", "hint: holdfast policy --help"),
    (
        "policy check --policy project --call {",
        2,
        "--call is not a valid call",
        'hint: expected {"operation"',
    ),
    (
        "policy test folder",
        2,
        "no policy named 'folder'",
        "hint: list the named policies with: holdfast policy show",
    ),
    ("config get polcy", 2, "there is no field 'polcy'", "hint: did you mean policy?"),
    (
        "config set budget.tokens many",
        2,
        "'many' is not a quantity of tokens",
        "hint: a number of tokens, optionally with one of k, m",
    ),
    ("why 1.1", 1, "there are no sessions yet", "hint: start one with: holdfast"),
    ("explain nosuch", 2, "unknown code 'nosuch'", "hint: list all codes with: holdfast explain"),
    ("approve nosuch", 1, "'nosuch' does not wait", "hint: nothing was changed"),
    (
        "waiting --folder nowhere",
        2,
        "'nowhere' is not a folder",
        "hint: pass the folder in which the other program",
    ),
    (
        "waiting --folder a-file",
        2,
        "'a-file' is not a folder",
        "hint: pass the folder in which the other program",
    ),
    ("files cat nosuch a", 1, "there is no session 'nosuch'", "lists all sessions"),
    ("export nosuch", 1, "there is no session 'nosuch'", "lists all sessions"),
    ("import nowhere.zip", 2, "there is no file 'nowhere.zip'", "hint: "),
    ("import a-file", 2, "is not a readable export", "hint: "),
    ("budget add", 1, "there are no sessions yet", "hint: start one with: holdfast"),
    ("proposals", 1, "there are no sessions yet", "hint: start one with: holdfast"),
    ("rename only", 2, "give a new name", "hint: for example: holdfast rename"),
    ("mcp annotate nosuch", 2, "there is no server 'nosuch'", "hint: holdfast mcp list"),
    ("install emacs", 2, "invalid choice: 'emacs'", "hint: holdfast install --help"),
    ("prune --older-than soon", 2, "'soon' is not an age", "hint: holdfast prune --help"),
    ("search", 2, "arguments are required: text", "hint: holdfast search --help"),
    ("mcp", 2, "required: list|diff|trust|remove|annotate|add|doctor", "hint: holdfast mcp --help"),
    ("init --project nowhere", 2, "there is no folder", "hint: pass an existing folder"),
)


@pytest.mark.parametrize(("words", "code", "what", "hint"), MISTAKES, ids=[each[0] for each in MISTAKES])
def test_a_mistake_is_reported_with_a_hint(
    words: str, code: int, what: str, hint: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a-file").write_text("x\n")
    (tmp_path / "four.json").write_text('["Four."]')
    (tmp_path / "broken.yaml").write_text("rules:\n  - name: a\n   deny: b\n")
    done = run(*words.split(" "))
    assert done.code == code, done.err
    assert what in done.err
    assert hint in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


def test_the_data_directory_cannot_be_a_project(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    done = holdfast("init", "--project", home=tmp_path, HOLDFAST_HOME=str(tmp_path / ".holdfast"))
    assert done.returncode == 2
    assert "it contains Holdfast's data directory" in done.stderr
    assert list((tmp_path / ".holdfast").iterdir()) == []


def test_files_are_read_as_utf8_whatever_the_locale(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('["naïve ✓"]', encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = holdfast_process("-m", "scripted:script.json", "hi", home=tmp_path, **ascii_only)
    assert done.returncode == 0, done.stderr


def test_yes_to_with_a_rule_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    done = holdfast(*words, "--yes-to", "ask-delte", "clean up", home=tmp_path)
    assert done.returncode == 2
    assert "--yes-to ask-delte: no rule of that name asks" in done.stderr
    assert "ask-delete" in done.stderr.partition("hint: ")[2]
    assert (tmp_path / "work" / "a.txt").exists()
    assert json.loads(holdfast("sessions", "--json", home=tmp_path).stdout) == [], "no session is created"


def test_yes_to_with_a_rule_that_does_not_cover_the_call_is_reported(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    done = holdfast(*words, "--yes-to", "requires-approval", "clean up", home=tmp_path)
    assert done.returncode == 5
    assert "--yes-to requires-approval does not cover the waiting call: rule ask-delete asks" in done.stderr


def test_empty_lists_are_reported(run: Run, tmp_path: Path) -> None:
    assert "add one with: holdfast mcp add" in run("mcp", "doctor").err
    assert run("teams", "init").code == 0
    for verb in ("status", "log"):
        assert "no messages yet" in run("teams", verb).err
    (tmp_path / "code.py").write_text("print(1 + 1)\n")
    assert run("exec", "code.py").out == "2\n"


def test_adding_to_an_unlimited_dimension_names_the_command_that_shows_limits(tmp_path: Path) -> None:
    (tmp_path / "four.json").write_text(json.dumps(["Four."]))
    assert holdfast("-n", "sum", "-m", "scripted:four.json", "two and two?", home=tmp_path).returncode == 0
    done = holdfast("budget", "add", "sum", "calls=10", home=tmp_path)
    assert done.returncode == 2
    assert "holdfast budget show lists the limits" in done.stderr


def test_yes_to_works_at_a_terminal(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    with terminal(*words, "--yes-to", "ask-delete", "clean up", home=tmp_path) as user:
        assert user.end() == 0, user.seen
        assert "press a key" not in user.seen
    assert not (tmp_path / "work" / "a.txt").exists()
    [call] = json.loads(holdfast("audit", "--json", home=tmp_path).stdout)
    assert call["transport"] == "--yes-to"


def test_yes_to_is_refused_in_a_chat(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    with terminal(*words, "--yes-to", "ask-delete", home=tmp_path) as user:
        assert user.end() == 2
        assert "--yes-to needs a task" in user.seen
