"""What a newcomer types wrongly: each mistake gets a line that says what is wrong, a way out, and the exit code that fits."""

import json
from pathlib import Path

import pytest
from tests.cli.commands import Run, run
from tests.cli.terminals import DELETE, prepared, terminal
from tests.cli.test_task import holdfast

__all__ = ["run"]

MISTAKES = (
    ("sesions", 2, "there is no command 'sesions'", "hint: holdfast sessions"),
    ("sesions --here", 2, "there is no command 'sesions'", "hint: holdfast sessions"),
    ("polcy show", 2, "there is no command 'polcy'", "hint: holdfast policy"),
    ("help polcy", 2, "there is no command 'polcy'", "hint: holdfast help policy"),
    ("help me", 2, "there is no command 'me'", "hint: holdfast help"),
    ("-x", 2, "unrecognized arguments: -x", "hint: holdfast --help shows examples"),
    ("-m nosuch:model hi", 2, "names no model", "hint: use one of anthropic:NAME"),
    ("-m scripted:none.json hi", 2, "holds no script", "hint: it has to be a JSON list"),
    ("-m scripted:four.json -w nowhere hi", 2, "'nowhere' is no folder", "hint: name a folder that exists"),
    ("-m scripted:four.json -w a-file hi", 2, "'a-file' is no folder", "hint: name a folder that exists"),
    ("-m scripted:four.json -w / hi", 2, "contains Holdfast's own folder", "hint: open the folder of one"),
    ("-m scripted:four.json -w folder hi", 2, "is not trusted yet", "say so once with --trust"),
    ("-m scripted:four.json -p nosuch hi", 2, "there is no policy named 'nosuch'", "hint: give a name"),
    ("-m scripted:four.json -p broken.yaml hi", 2, "broken.yaml:3:4: is no YAML", "hint: "),
    (
        "-m scripted:four.json --budget usd=many hi",
        2,
        "is not a quantity of usd",
        "hint: a number of US dollars",
    ),
    ("-m scripted:four.json --sandbox docker hi", 2, "invalid choice: 'docker'", "hint: holdfast --help"),
    ("-r nosuch", 1, "no session is called 'nosuch'", "`holdfast sessions` lists what there is"),
    ("-c", 1, "no session was started in this folder", "hint: see: holdfast sessions"),
    ("-c -r books", 2, "-c and -r are two ways to choose a session", "hint: -c takes the last one"),
    ("-r -c", 2, "-c and -r are two ways to choose a session", "hint: -c takes the last one"),
    ("policy chek", 2, "invalid choice: 'chek'", "hint: holdfast policy --help"),
    ("policy check --policy project --call {", 2, "--call is no call", 'hint: expected {"operation"'),
    ("policy test folder", 2, "no policy named 'folder'", "hint: give a name, or the path"),
    ("config get polcy", 2, "there is no field 'polcy'", "hint: did you mean policy?"),
    ("config set budget.tokens many", 2, "budget.tokens cannot be 'many' ", "hint: it is a whole number"),
    ("why 1.1", 1, "there are no sessions yet", "hint: start one with: holdfast"),
    ("explain nosuch", 2, "there is no code 'nosuch'", "hint: holdfast explain lists every code"),
    ("approve nosuch", 1, "'nosuch' does not wait", "hint: nothing was changed"),
    ("waiting --folder nowhere", 2, "'nowhere' is no folder", "hint: name the folder that the other program"),
    ("waiting --folder a-file", 2, "'a-file' is no folder", "hint: name the folder that the other program"),
    ("files cat nosuch a", 1, "no session is called 'nosuch'", "lists what there is"),
    ("export nosuch", 1, "no session is called 'nosuch'", "lists what there is"),
    ("import nowhere.zip", 2, "there is no file 'nowhere.zip'", "hint: "),
    ("import a-file", 2, "is no exported session", "hint: "),
    ("budget add", 1, "there are no sessions yet", "hint: start one with: holdfast"),
    ("proposals", 2, "arguments are required: action\n", "hint: holdfast proposals --help"),
    ("rename only", 2, "give a new name", "hint: like this: holdfast rename"),
    ("mcp annotate nosuch", 2, "there is no server 'nosuch'", "hint: holdfast mcp list"),
    ("model install nosuch", 2, "there is no 'nosuch' to install", "hint: one of: "),
    ("install emacs", 2, "invalid choice: 'emacs'", "hint: holdfast install --help"),
    ("prune --older-than soon", 2, "'soon' is no age", "hint: holdfast prune --help"),
    ("search", 2, "arguments are required: text", "hint: holdfast search --help"),
    ("mcp", 2, "required: list|diff|trust|remove|annotate|add|doctor", "hint: holdfast mcp --help"),
    ("init --project nowhere", 2, "there is no folder", "hint: name one that exists"),
)


@pytest.mark.parametrize(("words", "code", "what", "hint"), MISTAKES, ids=[each[0] for each in MISTAKES])
def test_a_mistake_is_told_with_a_way_out(
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


def test_the_home_of_holdfast_is_not_made_a_project(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    done = holdfast("init", "--project", home=tmp_path, HOLDFAST_HOME=str(tmp_path / ".holdfast"))
    assert done.returncode == 2
    assert "the home of Holdfast is in it" in done.stderr
    assert list((tmp_path / ".holdfast").iterdir()) == []


def test_nothing_is_read_in_the_letters_of_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text('["naïve ✓"]', encoding="utf-8")
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = holdfast("-m", "scripted:script.json", "hi", home=tmp_path, **ascii_only)
    assert done.returncode == 0, done.stderr


def test_a_yes_beforehand_to_another_rule_is_told_of(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    done = holdfast(*words, "--yes-to", "ask-delte", "clean up", home=tmp_path)
    assert done.returncode == 5
    assert "--yes-to ask-delte does not cover what waits: rule ask-delete asks" in done.stderr


def test_where_there_is_nothing_to_show_that_is_said(run: Run, tmp_path: Path) -> None:
    assert "add one with: holdfast mcp add" in run("mcp", "doctor").err
    assert run("teams", "init").code == 0
    for verb in ("status", "log"):
        assert "nobody has asked anybody yet" in run("teams", verb).err
    (tmp_path / "code.py").write_text("print(1 + 1)\n")
    assert run("exec", "code.py").out == "2\n"


def test_adding_to_what_has_no_limit_names_the_way_to_see_limits(tmp_path: Path) -> None:
    (tmp_path / "four.json").write_text(json.dumps(["Four."]))
    assert holdfast("-n", "sum", "-m", "scripted:four.json", "two and two?", home=tmp_path).returncode == 0
    done = holdfast("budget", "add", "sum", "calls=10", home=tmp_path)
    assert done.returncode == 2
    assert "holdfast budget show tells what has one" in done.stderr


def test_a_yes_beforehand_holds_at_a_terminal_too(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    with terminal(*words, "--yes-to", "ask-delete", "clean up", home=tmp_path) as typist:
        assert typist.end() == 0, typist.seen
        assert "press a digit" not in typist.seen
    assert not (tmp_path / "work" / "a.txt").exists()
    [call] = json.loads(holdfast("audit", "--json", home=tmp_path).stdout)
    assert call["transport"] == "--yes-to"


def test_a_yes_beforehand_is_refused_where_a_conversation_would_pass_it_over(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    with terminal(*words, "--yes-to", "ask-delete", home=tmp_path) as typist:
        assert typist.end() == 2
        assert "--yes-to goes with a task" in typist.seen
