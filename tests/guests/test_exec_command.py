"""`holdfast exec` and `holdfast sandbox`: host-supplied code as a turn, with no model, in each language."""

import io
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.cli.commands import Run, run
from tests.guests.engines import KEY, component_cache

import holdfast.guests.wasi.component as component
from holdfast.cli import exit_codes
from holdfast.store import Home

__all__ = ["run"]  # a fixture that pytest finds by its name here


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, run: Run) -> Run:
    """Runs a command with its last word as standard input."""

    def command(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(words[-1]))
        return run(*words[:-1], "-")

    return command  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "print('hello')\nworld.write(path='a.txt', content='x')\n6 * 7"),
        ("lisp", '(print "hello") (world/write "a.txt" "x") (* 6 7)'),
    ],
)
def test_code_is_a_turn_with_policy_budget_proposals_and_audit(typed: Run, language: str, code: str) -> None:
    done = typed("exec", "--lang", language, "-p", "project", "--json", code)
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["outcome"]["value"] == 42
    assert result["printed"] == "hello\n"
    assert [(entry["operation"], entry["decision"]["verdict"]) for entry in result["audit"]] == [
        ("world.write", "stage")
    ]
    assert [proposal["path"] for proposal in result["proposals"]] == ["a.txt"]
    assert (result["spent"]["calls"], result["spent"]["iterations"], result["spent"].get("tokens")) == (
        1,
        1,
        None,
    )


def test_what_is_printed_is_data_and_the_value_comes_last(run: Run, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("print('hello')\n[1, 2]")
    done = run("exec", "code.py")
    assert (done.code, done.out) == (0, "hello\n[1,2]\n")


def test_code_may_start_with_a_byte_order_mark(run: Run, typed: Run, tmp_path: Path) -> None:
    (tmp_path / "marked.py").write_text("6 * 7", encoding="utf-8-sig")
    assert run("exec", "marked.py").out == "42\n"
    assert typed("exec", "\ufeff6 * 7")[1] == "42\n"


def test_a_session_keeps_its_variables_and_its_files(typed: Run) -> None:
    first = json.loads(typed("exec", "--json", "x = 41").out)
    done = typed("exec", "--session", first["session"], "--json", "x + 1")
    assert json.loads(done.out)["outcome"]["value"] == 42


@pytest.mark.parametrize(
    ("language", "limit", "code", "error"),
    [
        ("python", "seconds = 0.2", "while True: pass", "0.2 s"),
        ("lisp", "steps = 5000", "(let loop () (loop))", "5000 steps"),
    ],
)
def test_limits_of_the_configuration_hold_and_are_explained(
    run: Run, typed: Run, tmp_path: Path, language: str, limit: str, code: str, error: str
) -> None:
    (tmp_path / "holdfast").mkdir(mode=0o700)
    (tmp_path / "holdfast" / "config.toml").write_text(f"[code]\n{limit}\n")
    done = typed("exec", "--lang", language, code)
    assert done.code == exit_codes.ERROR
    assert error in done.err
    assert "holdfast explain guest-limit" in done.err
    assert "`[code]`" in run("explain", "guest-limit").out


def test_python_refuses_a_step_limit_and_says_what_to_do(typed: Run, tmp_path: Path) -> None:
    (tmp_path / "holdfast").mkdir(mode=0o700)
    config = tmp_path / "holdfast" / "config.toml"
    config.write_text("[code]\nsteps = 5000\n")
    done = typed("exec", "--lang", "python", "print('ran')")
    assert (done.code, done.out) == (exit_codes.ERROR, "")
    assert "cannot count steps" in done.err
    assert "Remove `steps` from `[code]` in config.toml" in done.err
    config.write_text("[code]\n")
    assert typed("exec", "--lang", "python", "print('ran')").out == "ran\n"


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "kept = 40\nprint('before')\nworld.write(path='a.txt', content='x')\nkept + 2"),
        ("lisp", '(define kept 40) (print "before") (world/write "a.txt" "x") (+ kept 2)'),
    ],
)
def test_code_that_waited_resumes_without_a_model_in_the_sandbox_where_it_started(
    run: Run, typed: Run, language: str, code: str
) -> None:
    waits = typed("exec", "--lang", language, "-p", "ask-always", "--json", code)
    assert waits.code == exit_codes.WAITING
    session = json.loads(waits.out)["session"]
    assert json.loads(waits.out)["printed"] == "before\n"
    again = run("exec", "--session", session, "--json")
    assert (again.code, json.loads(again.out)["printed"]) == (exit_codes.WAITING, "before\n")
    assert f"holdfast exec --session {session}" in run("approve").err
    done = run("exec", "--session", session, "--json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert (result["outcome"]["value"], result["printed"]) == (42, "before\n")
    assert [entry["operation"] for entry in result["audit"]] == ["world.write"]


def test_what_was_printed_before_a_wait_is_written_at_once_and_once(run: Run, typed: Run) -> None:
    waits = typed(
        "exec", "-p", "ask-always", "print('before')\nworld.write(path='a', content='x')\nprint('after')"
    )
    assert (waits.code, waits.out) == (exit_codes.WAITING, "before\n")
    run("approve")
    [session] = json.loads(run("sessions", "--json").out)
    assert run("exec", "--session", session["id"]).out == "before\nafter\n"


def test_exec_without_code_is_an_error_if_nothing_waits(run: Run, typed: Run) -> None:
    session = json.loads(typed("exec", "--json", "1").out)["session"]
    assert "(session-not-ready)" in run("exec", "--session", session).err
    assert "(invalid-input)" in run("exec").err


def test_a_refused_call_and_an_error_have_their_exit_codes(typed: Run) -> None:
    refused = typed("exec", "--no-escalations", "open('/etc/passwd').read()")
    failed = typed("exec", "1 / 0")
    assert (refused.code, failed.code) == (exit_codes.DENIED, exit_codes.ERROR)
    assert "ZeroDivisionError" in failed.err
    assert typed("exec", "x =").err.count("Expected an expression") == 1, "what is one line is said once"


@pytest.mark.parametrize(
    ("language", "code"), [("python", "open('notes.txt').read()"), ("lisp", '(world/read "notes.txt")')]
)
def test_a_file_that_is_missing_in_the_sessions_own_folder_hints_at_the_current_one(
    typed: Run, tmp_path: Path, language: str, code: str
) -> None:
    done = typed("exec", "--lang", language, code)
    assert done.code == exit_codes.ERROR
    assert "hint: the code ran in a new empty folder; use -w . for files of the current one" in done.err
    (tmp_path / "project").mkdir()
    done = typed("exec", "--trust", "-w", "project", "--lang", language, code)
    assert (done.code, "empty folder" in done.err) == (exit_codes.ERROR, False)


@pytest.mark.timeout(900)
def test_real_cpython_runs_as_a_turn_too(typed: Run, tmp_path: Path) -> None:
    install_component(Home(tmp_path / "holdfast"))
    code = "import sqlite3\nopen('a.txt', 'w').write('x')\nsum(n for n in (40, 2))"
    done = typed("exec", "--lang", "wasi", "-p", "project", "--json", code)
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["outcome"]["value"] == 42
    assert [proposal["path"] for proposal in result["proposals"]] == ["a.txt"]
    assert [entry["operation"] for entry in result["audit"]] == ["world.write"]
    denied = typed("exec", "--lang", "wasi", "-p", "safe-analysis", "open('a.txt', 'w').write('x')\n7")
    assert denied.code == exit_codes.DENIED, "what the code wrote was dropped"
    assert "[a.txt was not changed:" in denied.out


@pytest.mark.timeout(900)
def test_the_sandbox_command_tests_each_sandbox(run: Run, tmp_path: Path) -> None:
    before = run("sandbox")
    assert before.code == 0, before.err
    assert "not built yet: holdfast sandbox build" in before.out
    install_component(Home(tmp_path / "holdfast"))
    found = json.loads(run("sandbox", "--json").out)
    assert [each["capabilities"]["engine"] for each in found] == ["python", "wasi", "lisp"]
    for each in found:
        assert len(each["checks"]) >= 6
        assert all(check["is_passed"] for check in each["checks"])


def install_component(home: Home) -> None:
    """Copy the component that the tests have built into a data directory, with an HMAC of its key."""
    home.prepare()
    verified = component.open_verified(component_cache(), component.component_name(), KEY)
    assert verified is not None, "python -m tests.prepare builds it"
    name = component.component_name()
    with open(verified, "rb") as source, component.image_path(home.cache, name).open("wb") as target:
        shutil.copyfileobj(source, target)
    image = os.open(component.image_path(home.cache, name), os.O_RDONLY)
    component.hmac_path(home.cache, name).write_bytes(component.compute_hmac(image, name, home.key()))
    os.close(image)
