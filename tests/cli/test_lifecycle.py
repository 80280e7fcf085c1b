"""Pausing, resuming, completing and aborting a session at the command line."""

import json
from pathlib import Path

import pytest
from tests.cli.commands import Run, run

__all__ = ["run"]


@pytest.fixture
def session(run: Run, tmp_path: Path) -> str:
    (tmp_path / "code.lisp").write_text('(world/write "a.txt" "new")')
    (tmp_path / "project").mkdir()
    done = run(
        *("exec", "--lang", "lisp", "-w", "project", "--trust", "-p", "project", "--json", "code.lisp")
    )
    assert done.code == 0, done.err
    return str(json.loads(done.out)["session"])


def lifecycle(run: Run, session: str) -> str:
    [summary] = [each for each in json.loads(run("sessions", "--json").out) if each["id"] == session]
    return str(summary.get("lifecycle", "open"))


def test_f23_a_paused_session_takes_no_turns_until_it_is_resumed(run: Run, session: str) -> None:
    assert run("pause", session).code == 0
    assert lifecycle(run, session) == "paused"
    refused = run("exec", "--session", session, "code.lisp")
    assert refused.code != 0
    assert f"holdfast resume {session}" in refused.err
    assert run("resume", session).code == 0
    assert run("exec", "--session", session, "code.lisp").code == 0


@pytest.mark.parametrize(("verb", "state", "left"), [("complete", "completed", 1), ("abort", "aborted", 0)])
def test_f23_an_ended_session_takes_no_turns(
    run: Run, session: str, verb: str, state: str, left: int
) -> None:
    assert run(verb, session, "--reason", "enough").code == 0
    assert lifecycle(run, session) == state
    assert run("exec", "--session", session, "code.lisp").code == 1
    assert run(verb, session).code == 1, "it has already ended"
    assert len(json.loads(run("proposals", "show", session, "--json").out)) == left


def test_proposals_alone_shows_those_of_the_newest_session_and_a_check_is_never_ignored(
    run: Run, session: str
) -> None:
    assert run("proposals").out == run("proposals", "show", session).out != ""
    for action in ("show", "review", "reject"):
        done = run("proposals", action, session, "--check", "true")
        assert (done.code, "--check decides about a commit" in done.err) == (2, True)
    assert run("proposals").out, "nothing was rejected"


def test_a_budget_added_to_an_ended_session_is_for_its_forks(run: Run, tmp_path: Path) -> None:
    (tmp_path / "code.lisp").write_text("1")
    (tmp_path / "holdfast").mkdir(mode=0o700)
    (tmp_path / "holdfast" / "config.toml").write_text("[budget]\ncalls = 10\n")
    limited = json.loads(run("exec", "--lang", "lisp", "--json", "code.lisp").out)["session"]
    assert run("complete", limited).code == 0
    done = run("budget", "add", limited, "calls=1")
    assert (done.code, f"holdfast fork {limited}" in done.err) == (0, True), done.err
