"""`holdfast "task"`, and `holdfast` without a model."""

import json
from pathlib import Path

import pytest
from tests.cli.commands import holdfast, holdfast_process

__all__ = ["holdfast"]


def script(home: Path, *replies: object) -> str:
    path = home / "script.json"
    path.write_text(json.dumps(replies))
    return f"scripted:{path}"


def runs(code: str) -> dict[str, object]:
    part = {"kind": "tool-call", "id": "c1", "tool": "execute_code", "arguments": {"code": code}}
    return {"message": {"role": "model", "parts": [part]}, "usage": {}, "finish": "tool-calls"}


def test_the_answer_goes_to_stdout_and_everything_else_to_stderr(tmp_path: Path) -> None:
    model = script(tmp_path, runs("open('a.txt', 'w').write('x')"), "I wrote a.txt.")
    done = holdfast("-m", model, "-p", "project", "write a file", home=tmp_path)
    assert (done.returncode, done.stdout) == (0, "I wrote a.txt.\n")
    assert "stage   world.write" in done.stderr
    assert "a.txt" in done.stderr


def test_code_that_cannot_run_is_reported_with_its_first_problem(tmp_path: Path) -> None:
    model = script(tmp_path, runs("a = 'x\n" + "one two\n" * 9), "Sorry.")
    done = holdfast("-m", model, "-p", "project", "go", home=tmp_path)
    assert "  error   line 1: missing closing quote" in done.stderr


def test_a_task_can_be_piped_in(tmp_path: Path) -> None:
    done = holdfast_process("-m", script(tmp_path, "Yes."), home=tmp_path, stdin="are you there?\n")
    assert (done.returncode, done.stdout) == (0, "Yes.\n"), done.stderr


def test_json_has_outcome_spent_proposals_and_audit(tmp_path: Path) -> None:
    model = script(tmp_path, runs("open('a.txt', 'w').write('x')"), "Done.")
    report = json.loads(holdfast("-m", model, "-p", "project", "--json", "write", home=tmp_path).stdout)
    assert report["outcome"] == {"outcome": "proposed", "value": "Done.", "proposals": ["a.txt"]}
    assert report["spent"]["calls"] == 1
    assert report["proposals"][0]["path"] == "a.txt"
    assert report["audit"][0]["operation"] == "world.write"


@pytest.mark.parametrize("words", [["hello"], []])
def test_without_a_model_two_lines_explain_how_to_get_one(tmp_path: Path, words: list[str]) -> None:
    done = holdfast(*words, home=tmp_path)
    assert done.returncode == 6
    assert len(done.stderr.splitlines()) == 2
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert "holdfast demo" in done.stderr
    assert json.loads(holdfast("sessions", "--json", home=tmp_path).stdout) in ([], {"sessions": []})


def test_a_waiting_call_has_its_own_exit_code(tmp_path: Path) -> None:
    model = script(tmp_path, runs("open('/etc/hostname').read()"), "Done.")
    waits = holdfast("-m", model, "-p", "project", "read it", home=tmp_path)
    assert waits.returncode == 5, waits.stderr
    assert waits.stderr.endswith(
        "hint: answer with holdfast approve or holdfast deny, which also print how to resume\n"
    )
    denied = holdfast("-m", model, "--no-escalations", "read it", home=tmp_path)
    assert denied.returncode == 0, denied.stderr
    assert "no one can be asked here" in denied.stderr


@pytest.mark.parametrize(("word", "expected"), [("approve", "Done."), ("deny", "Done.")])
def test_a_waiting_call_can_be_answered_from_another_terminal(
    tmp_path: Path, word: str, expected: str
) -> None:
    code = "try:\n    import os\n    os.remove('a.txt')\n    print('made')\nexcept PermissionError as no:\n    print('told', no)"
    (tmp_path / "p.yaml").write_text(
        "policy: p\nrules:\n"
        "  - name: ask\n    escalate: world.delete\n    because: ask me\n"
        "    examples: {matches: [{world.delete: {path: a}}], misses: [{world.read: {path: a}}]}\n"
    )
    model = script(tmp_path, runs(code), expected)
    assert holdfast("-m", model, "-p", "p.yaml", "remove it", home=tmp_path).returncode == 5
    [waits] = json.loads(holdfast("waiting", "--json", home=tmp_path).stdout)
    answered = holdfast(word, waits["escalation"]["id"], "--reason", "as you like", home=tmp_path)
    assert answered.returncode == 0, answered.stderr
    went_on = holdfast("--continue", home=tmp_path)
    assert (went_on.returncode, went_on.stdout) == (0, "Done.\n"), went_on.stderr
    [entry] = json.loads(holdfast("audit", "--json", home=tmp_path).stdout)
    assert (entry["transport"], entry["response"]["verdict"]) == ("command", word)
    again = holdfast(word, home=tmp_path)
    assert again.returncode == 1
    assert "no call waits for approval" in again.stderr


def test_a_broken_configuration_names_the_file_and_the_field(tmp_path: Path) -> None:
    (tmp_path / "holdfast").mkdir()
    (tmp_path / "holdfast" / "config.toml").write_text("polcy = 'project'\n")
    done = holdfast("hello", home=tmp_path)
    assert done.returncode == 2
    assert "config.toml" in done.stderr
    assert "polcy" in done.stderr
    assert "hint:" in done.stderr


def test_a_resumed_session_keeps_its_folder_and_its_name(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    model = script(tmp_path, "First.", "Second.")
    first = holdfast("-w", "one", "--trust", "-n", "work", "-m", model, "begin", home=tmp_path)
    assert first.returncode == 0, first.stderr
    moved = holdfast("-r", "work", "-w", "two", "--trust", "go on", home=tmp_path)
    assert (moved.returncode, moved.stdout) == (2, "")
    assert f"this session works in '{tmp_path}/one'" in moved.stderr
    renamed = holdfast("-r", "work", "-n", "other", "go on", home=tmp_path)
    assert (renamed.returncode, "keeps its name" in renamed.stderr) == (2, True)
    same = holdfast("-c", "-w", "one", "-n", "work", "go on", home=tmp_path)
    assert (same.returncode, same.stdout) == (0, "Second.\n"), same.stderr


def test_committing_a_path_that_is_not_staged_is_an_error(tmp_path: Path) -> None:
    assert holdfast("-n", "work", "-m", script(tmp_path, "Hello."), "hi", home=tmp_path).returncode == 0
    assert holdfast("proposals", "commit", "work", home=tmp_path).returncode == 0
    assert holdfast("proposals", "commit", "work", "a.txt", home=tmp_path).returncode == 2
