"""A home that version 0.1 left behind, opened with the code of today. `record_home.py` tells how it was made.

Only commands, their JSON and the public names of the package are used, and no sentence is compared: those may change.
"""

import io
import json
import os
import runpy
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support.fork_server import forked_python

import holdfast

DATA = Path(__file__).parent / "data"
ARCHIVE = DATA / "export-0.1.zip"
FACTS: dict[str, Any] = json.loads((DATA / "home-0.1.json").read_text())
IDS: dict[str, str] = {each["name"]: id for id, each in FACTS["sessions"].items() if each["name"]}
RECORDED_IN = "/tmp/holdfast-compat"
HOME = "/proc/self/cwd/holdfast"
"""Sessions of teams and answers to calls hang on the path of the home; this is the same in every folder."""
OK, USAGE, BUDGET, WAITING = 0, 2, 4, 5
RENAMED = {
    "mode": "acts_with",
    "max_tokens": "model_requests.max_tokens",
    "asking.base_url": "model_requests.base_url",
    "asking.key_variable": "model_requests.key_variable",
    "asking.total_seconds": "model_requests.timeout_seconds",
    "asking.attempts": "model_requests.max_attempts",
    "asking.max_reply_bytes": "model_requests.max_reply_bytes",
    "asking.context_tokens": "model_requests.context_tokens",
    "asking.temperature": "model_requests.temperature",
    "asking.thinking": "model_requests.thinking",
    "asking.local_threads": "model_requests.local_threads",
}
"""Keys of config.toml under their old names, which are still read, and the names under which they are shown."""


class Done(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command, as `python -m holdfast` does, in a folder with the old home."""
    with tarfile.open(DATA / "home-0.1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="tar")
    roster = tmp_path / "holdfast" / "teams.yaml"
    roster.write_text(roster.read_text().replace(RECORDED_IN, str(tmp_path)))
    for name in [name for name in os.environ if name.startswith("HOLDFAST_") or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HOLDFAST_HOME", HOME)
    monkeypatch.chdir(tmp_path)

    def command(*words: str, stdin: str = "", home: str | None = None) -> Done:
        capfd.readouterr()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["holdfast", *words])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            if home is not None:
                patch.setenv("HOLDFAST_HOME", home)
            with pytest.raises(SystemExit) as left:
                runpy.run_module("holdfast", run_name="__main__", alter_sys=True)
        return Done(int(left.value.code or 0), *capfd.readouterr())

    return command


@pytest.fixture
def home(tmp_path: Path, run: Run) -> Path:
    return tmp_path / "holdfast"


def events(run: Run, session: str) -> list[dict[str, Any]]:
    """Every event of a session, rewound ones too."""
    shown = run("show", session, "--events", "--json")
    assert shown.code == OK, shown.err
    return [each["event"] for each in shown.data["events"]]


def last(run: Run, session: str, tag: str) -> dict[str, Any]:
    return [each for each in events(run, session) if each["event"] == tag][-1]


def script(*replies: object) -> str:
    """A model that says this; earlier replies of a session count."""
    Path("script.json").write_text(json.dumps(replies))
    return "scripted:script.json"


def runs(code: str) -> dict[str, object]:
    part = {"kind": "tool-call", "id": "", "tool": "execute_code", "arguments": {"code": code}}
    return {"message": {"role": "model", "parts": [part]}, "usage": {}, "finish": "tool-calls"}


# -- reading


def test_every_session_is_listed_under_its_name(run: Run) -> None:
    listed = {each["id"]: each for each in run("sessions", "--limit", "1000", "--json").data}
    assert {id: each.get("name") for id, each in listed.items()} == {
        id: each["name"] for id, each in FACTS["sessions"].items()
    }
    states = {each.get("name"): each.get("lifecycle") for each in listed.values()}
    assert (states["paused"], states["completed"], states["aborted"]) == ("paused", "completed", "aborted")
    assert [each["name"] for each in listed.values() if each.get("is_pinned")] == ["staged"]
    assert listed[IDS["the-branch"]]["parent"]["session"] == IDS["committed"]


def test_every_journal_is_what_was_written(run: Run) -> None:
    verified = run("verify", "--all", "--json")
    assert verified.code == OK
    assert {each["session"]: (each["events"], each["last_hash"]) for each in verified.data} == {
        id: (each["events"], each["last_hash"]) for id, each in FACTS["sessions"].items()
    }


def test_every_event_is_read(run: Run) -> None:
    tags = set()
    for id, each in FACTS["sessions"].items():
        found = events(run, id)
        assert len(found) == each["events"]
        tags |= {event["event"] for event in found}
    assert tags == set(FACTS["tags"])


def test_a_session_is_shown_and_audited(run: Run) -> None:
    assert run("show", "granted").code == OK
    calls = run("audit", "granted", "--json").data
    assert [(each["operation"], each["result"]) for each in calls] == [
        ("notes.keep", "ok"),
        ("world.write", "ok"),
        ("world.write", "ok"),
        ("world.write", "refused"),
    ]
    assert run("why", "4.1", "--session", "granted", "--json").data["response"]["reason"] == "not this one"


def test_a_lost_index_is_made_again(run: Run) -> None:
    before = run("sessions", "--limit", "1000", "--json").data
    assert run("rebuild-index").code == OK
    assert run("sessions", "--limit", "1000", "--json").data == before
    assert run("search", "plan", "--json").data[0]["session"] == IDS["staged"]


def test_the_configuration_is_read(run: Run) -> None:
    shown = {each["key"]: each["value"] for each in run("config", "--json", "show").data}
    recorded = dict(FACTS["config"])
    # Version 0.1 had two `max_tokens`, of which the top-level one took precedence.
    del recorded["asking.max_tokens"]
    assert {key: shown[RENAMED.get(key, key)] for key in recorded} == recorded


# -- going on


def test_a_session_goes_on_with_its_model(run: Run, home: Path) -> None:
    done = run("-r", "staged", "--json", "are you there?")
    assert done.code == OK, done.err
    assert done.data["session"] == IDS["staged"]
    assert done.data["outcome"] == {"outcome": "ok", "value": "And I am still here."}
    assert [each["path"] for each in done.data["proposals"]] == ["plan.txt"]


def test_staged_changes_are_committed(run: Run, home: Path) -> None:
    assert [each["path"] for each in run("proposals", "show", "staged", "--json").data] == ["plan.txt"]
    assert run("proposals", "commit", "staged", "--json").data["paths"] == ["plan.txt"]
    assert (home / "sessions" / IDS["staged"] / "workspace" / "plan.txt").read_text() == "one\n"


def remove_step_limit(home: Path) -> None:
    """The recorded configuration has one, which `python` does not support."""
    config = (home / "config.toml").read_text()
    assert "\nsteps = 10000000\n" in config
    (home / "config.toml").write_text(config.replace("\nsteps = 10000000\n", "\n"))


def test_variables_of_python_are_still_there(run: Run, home: Path) -> None:
    remove_step_limit(home)
    done = run("exec", "--session", "variables", "--json", "-", stdin="print(double(values[1]), label)")
    assert (done.code, done.data["printed"]) == (OK, "4 kept\n")
    assert run("replay", "variables").code == OK


def test_definitions_and_facts_of_lisp_are_still_there(run: Run) -> None:
    code = "(list (double (car (cdr values))) label (length (facts)))"
    done = run("exec", "--lang", "lisp", "--session", "lisp", "--json", "-", stdin=code)
    assert (done.code, done.data["outcome"]["value"]) == (OK, [4, "kept", 1])


def test_a_session_is_rewound(run: Run, home: Path) -> None:
    notes = home / "sessions" / IDS["committed"] / "workspace" / "notes.txt"
    assert notes.read_text() == "first"
    assert [each["turn"] for each in run("rewind", "committed", "--json").data] == [0, 1, 2]
    assert run("rewind", "committed", "--to", "1", "--json").data["turn"] == 1
    assert not notes.exists()
    assert run("proposals", "commit", "committed", "--json").data["paths"] == ["notes.txt"]
    assert notes.read_text() == "first"


def test_a_fork_gets_a_large_file_from_its_restore_point(run: Run, home: Path) -> None:
    assert run("fork", "large", "--name", "copy").code == OK
    [copy] = [each["id"] for each in run("sessions", "--json").data if each.get("name") == "copy"]
    large = home / "sessions" / copy / "workspace" / "large.txt"
    assert large.read_text() == "0123456789abcdef" * 80000


def test_a_session_of_a_folder_that_is_gone_can_be_forked(run: Run, home: Path) -> None:
    assert run("fork", "in-project", "--name", "moved").code == OK
    [moved] = [each["id"] for each in run("sessions", "--json").data if each.get("name") == "moved"]
    assert (home / "sessions" / moved / "workspace" / "readme.txt").read_text() == "A project.\n"


def test_a_raised_budget_counts_and_a_request_that_was_left_is_granted(run: Run, home: Path) -> None:
    budget = run("budget", "show", "funded", "--json").data
    assert (budget["limits"]["calls"], budget["limits"]["tokens"]) == (25, 900_000)
    assert run("-r", "funded", "--json", "go on").code == OK
    assert run("budget", "show", "funded", "--json").data["limits"]["tokens"] == 901_000
    assert not (home / "sessions" / IDS["funded"] / "inbox").exists()
    with closing(sqlite3.connect(home / "holdfast.db")) as connection:
        shares = connection.execute("SELECT session FROM share WHERE tree = ?", (IDS["funded"],)).fetchall()
    assert {session for (session,) in shares} == {IDS["funded"], IDS["funded-fork"]}
    assert not (home / "sessions" / IDS["funded"] / "purse.json").exists(), "it moved into the store"


# -- the person


def test_what_waits_is_listed(run: Run) -> None:
    """With every field that it had; later versions add fields."""
    listed = run("waiting", "--json").data
    assert len(listed) == len(FACTS["waiting"])
    for entry, recorded in zip(listed, FACTS["waiting"], strict=True):
        assert {name: entry[name] for name in recorded} == recorded


@pytest.mark.parametrize("name", ["waiting", "waiting-lisp"])
def test_a_call_that_waits_is_approved_and_goes_on(run: Run, name: str) -> None:
    [waits] = run("waiting", "--session", name, "--json").data
    assert run("approve", waits["escalation"]["id"]).code == OK
    done = run("-r", name, "--json")
    assert (done.code, done.data["outcome"]["value"]) == (OK, "It is kept."), done.err
    [call] = done.data["audit"]
    assert (call["operation"], call["result"]) == ("notes.keep", "ok")
    assert call["escalation"] == waits["escalation"]["id"]
    if name == "waiting":
        assert last(run, name, "run-ended")["printed"] == "42 kept\n"
        return
    done = run("-r", name, "--sandbox", "lisp", "--json", "and now?")
    assert (done.code, done.data["outcome"]["value"]) == (OK, "Still here."), done.err
    assert last(run, name, "run-ended")["value"] == [42, "kept"]


def test_a_call_that_waits_is_answered_by_a_file(run: Run, home: Path) -> None:
    [waits] = run("waiting", "--session", "waiting", "--json").data
    escalation = waits["escalation"]
    answer = {"decision": "approved", "digest": escalation["digest"], "scope": "once", "reason": "fine"}
    folder = home / "sessions" / IDS["waiting"] / "escalations"
    (folder / f"response-{escalation['id']}.json").write_text(json.dumps(answer))
    run("-r", "waiting", "--json")
    assert run("-r", "waiting", "--json", "and now?").data["outcome"]["value"] == "Still here."
    assert last(run, "waiting", "escalation-answered")["response"] == {"verdict": "approve", "reason": "fine"}


def test_a_call_that_waits_is_denied(run: Run, home: Path) -> None:
    assert run("deny", "--session", "waiting-file", "--reason", "not now").code == OK
    assert run("-r", "waiting-file", "--json").data["outcome"]["value"] == "I see."
    assert not (home / "sessions" / IDS["waiting-file"] / "workspace" / "answer.txt").exists()


def test_grants_stand_cover_and_are_taken_back(run: Run, home: Path) -> None:
    remove_step_limit(home)

    def grants() -> list[Any]:
        return [each["grant"] for each in run("grants", "--session", "granted", "--json").data]

    assert grants() == [each["grant"] for each in FACTS["grants"]]
    always, session, times = grants()
    assert [each["scope"] for each in (always, session, times)] == ["always", "session", "times"]
    done = run("-r", "granted", "--json", "once more")
    assert (done.code, done.data["outcome"]["value"]) == (OK, "Kept again."), done.err
    assert done.data["audit"][-1]["grant"] == session["id"]
    model = script(runs("print(notes.keep(text='eggs'))"), "Kept.")
    done = run("-m", model, "-p", "asking", "--json", "keep eggs")
    assert (done.code, done.data["audit"][-1]["grant"]) == (OK, always["id"]), done.err
    assert run("grants", "revoke", always["id"]).code == OK
    assert run("-m", model, "-p", "asking", "--json", "keep eggs").code == WAITING
    assert [each["id"] for each in grants()] == [session["id"], times["id"]]


# -- files that travel


def test_an_archive_is_imported_and_goes_on(run: Run, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    imported = run("import", str(ARCHIVE), "--json", home=other).data
    assert imported["id"] == IDS["committed"]
    assert run("verify", home=other).code == OK
    facts = FACTS["sessions"][IDS["committed"]]
    shown = run("show", "committed", "--events", "--json", home=other).data["events"]
    assert shown[facts["events"] - 1]["hash"] == facts["last_hash"]
    assert [each["path"] for each in run("proposals", "show", "committed", "--json", home=other).data] == [
        "notes.txt"
    ]
    resumed = run("-r", "committed", "-m", imported["wanted"]["model"], "--json", "go on", home=other)
    assert resumed.code == OK  # an archive chooses no model
    notes = tmp_path / "other" / "sessions" / IDS["committed"] / "workspace" / "notes.txt"
    assert notes.read_text() == "first"


def test_the_checker_in_an_old_archive_accepts_a_new_one(run: Run, tmp_path: Path) -> None:
    assert run("export", "committed", "-o", "new.zip", "--json").data["session"] == IDS["committed"]
    with zipfile.ZipFile(ARCHIVE) as old, zipfile.ZipFile("new.zip") as new:
        old.extract("verify.py")
        assert {*old.namelist(), "signature.json"} == set(new.namelist())
    done = subprocess.run([sys.executable, "verify.py", "new.zip"], capture_output=True)
    assert done.returncode == 0


# -- teams and servers


def test_teams_remember_what_was_said_and_deliver_what_was_left(run: Run) -> None:
    listed = run("teams", "status", "--json").data
    assert {each["id"]: each["description"] for each in listed} == FACTS["teams"]
    said = run("teams", "log", "beta", "--from", "alpha", "--json").data
    assert [each["text"] for each in said] == ["hello", "what now?", "no hurry"]
    done = run("teams", "ask", "beta", "what is new?", "--from", "alpha", "--json")
    assert done.code == OK, done.err
    [mail] = [id for id in FACTS["sessions"] if id.startswith("mail-")]
    left, delivered = [
        [each for each in events(run, mail) if each["event"] == tag]
        for tag in ("notice-left", "notices-delivered")
    ]
    assert left[-1]["notice"] in delivered[-1]["notices"]


def test_a_letter_that_was_left_is_delivered(run: Run) -> None:
    [mail] = [id for id in FACTS["sessions"] if id.startswith("mail-")]
    letter = last(run, mail, "letter-left")["message"]
    served = subprocess.Popen(
        forked_python("-m", "holdfast", "teams", "serve"),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        while last(run, mail, "letter-settled")["message"] != letter:
            assert served.poll() is None
        served.communicate(timeout=60)
    finally:
        served.kill()
        served.communicate()
    assert last(run, mail, "letter-settled")["outcome"]["outcome"] == "ok"


def test_servers_keep_the_tools_that_were_accepted(run: Run) -> None:
    [server] = run("mcp", "list", "--json").data
    assert (server["server"]["name"], list(server["pins"]["tools"])) == ("notes", ["keep"])
    assert run("mcp", "doctor", "notes").code == OK


# -- the library


async def test_the_library_opens_the_home(run: Run, home: Path) -> None:
    runtime = await holdfast.Runtime.start(home=home)
    session = await runtime.resume("paused", model=holdfast.ScriptedModel(["Noted."] * 9))
    assert session.id == IDS["paused"]
    await session.resume()
    await session.send("hello again")
    assert len(session.history()) == 2
    await runtime.close()
    async with holdfast.open(holdfast.ScriptedModel(["Noted."] * 9), resume="compacted", home=home) as again:
        assert len(again.history()) == 5


# -- what comes next


def test_a_new_home_has_the_old_layout(run: Run, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    for words in (("init",), ("teams", "init"), ("exec", "-")):
        assert run(*words, stdin="open('a.txt', 'w').write('x' * 2_000_000)", home=str(fresh)).code == OK
    found = {str(path.relative_to(fresh)) for path in fresh.iterdir()}
    assert found <= {name for name in FACTS["files"] if "/" not in name}
    assert found >= {
        "config.toml",
        "holdfast.db",
        "key",
        "policies",
        "sessions",
        "blobs",
        "cache",
        "teams.yaml",
    }
    [session] = (fresh / "sessions").iterdir()
    assert {f"sessions/*/{path.name}" for path in session.iterdir()} <= set(FACTS["files"])
