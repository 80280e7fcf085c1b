"""The session commands, as a user or a program runs them."""

import asyncio
import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import holdfast
from tests.cli.terminals import terminal
from tests.store.sample_events import asked, opened, replied, said, turn

from holdfast.cli.main import main
from holdfast.cli.views.resume import resume_notice
from holdfast.core import SessionId, SystemClock
from holdfast.store import Home
from holdfast.store.sqlite.store import SqliteStore

OURS = [
    "sessions",
    "show",
    "rename",
    "search",
    "export",
    "import",
    "fork",
    "prune",
    "pin",
    "delete",
    "verify",
    "rebuild-index",
]


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The command line on a home with two sessions."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    asyncio.run(_seed(tmp_path))

    def holdfast(*words: str) -> tuple[int, str, str]:
        try:
            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return holdfast


async def _seed(folder: Path) -> None:
    store = await SqliteStore.start(Home(folder / "home"), clock=SystemClock())
    first = await store.create(opened(name="first", folder=str(folder)), session=SessionId("s-1"))
    await first.append(*turn(1, "Fix the failing test"))
    await first.append(*turn(2, "and now the docs"))
    second = await store.create(opened(folder="/elsewhere"), session=SessionId("s-2"))
    await second.append(said(1, "remove it\x1b[31m"), asked(1))
    await store.close()


def data(result: tuple[int, str, str]) -> Any:
    assert result[0] == 0, result
    return json.loads(result[1])


Run = Callable[..., tuple[int, str, str]]


def test_the_list_shows_state_cost_and_first_words(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("sessions")
    newest, oldest = out.splitlines()
    assert code == 0
    assert "s-2" in newest
    assert "waiting 0s" in newest
    assert "\x1b" not in newest
    assert all(word in oldest for word in ("s-1", "first", "2 turns", "$0.50", "Fix the failing test"))
    assert [line["id"] for line in data(run("sessions", "--json"))] == ["s-2", "s-1"]
    assert [line["id"] for line in data(run("sessions", "--here", "--json"))] == ["s-1"]


def test_show_prints_a_session_or_one_turn(run: Run) -> None:
    assert "[2] you: and now the docs" in run("show", "first")[1]
    assert "failing" not in run("show", "first", "--turn", "2")[1]
    assert len(data(run("show", "first", "--events", "--json"))["events"]) == 7
    assert run("show", "nobody")[0] == 1
    code, _, error = run("show", "first", "--turn", "99")
    assert (code, "there is no turn 99 in this session" in error) == (2, True)


def test_only_an_empty_session_is_reported_as_empty(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("0", "-1", "many", "9" * 30):
        assert run("sessions", "--limit", limit)[0] == 2
        assert run("search", "docs", "--limit", limit)[0] == 2
    monkeypatch.chdir(tmp_path / "home")
    assert run("sessions", "--here") == (
        0,
        "",
        "no session was started in this folder; start one with: holdfast\n",
    )


def test_a_turn_is_shown_with_all_its_events(run: Run, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("open('a.txt', 'w').write('x')\nprint(world.list())\n")
    assert run("exec", "-p", "project", "code.py")[0] == 0
    _, whole, about = run("show")
    assert "sandbox: python" in about
    assert whole == run("show", "--turn", "1")[1]
    for line in ("    staged: world.write path=/workspace/a.txt content=x", "    did: world.list"):
        assert line in whole.splitlines()
    assert "    printed: ['a.txt']" in whole
    of_turn = data(run("show", "--turn", "1", "--events", "--json"))["events"]
    assert {"call-intended", "call-settled"} <= {each["event"]["event"] for each in of_turn}
    assert run("show", "--turn", "0")[0] == 2


@pytest.mark.parametrize("time", ["nan", "inf", "-1", "soon"])
def test_a_wait_must_be_finite(run: Run, time: str) -> None:
    code, _, error = run("-r", "s-1", "--wait", time, "hi")
    assert (code, "is not a number of seconds" in error) == (2, True)


def test_a_session_is_renamed_and_found_by_the_new_name(run: Run) -> None:
    assert data(run("rename", "s-2", "Second One", "--json"))["name"] == "second-one"
    assert run("show", "second-one")[0] == 0
    assert run("rename", "s-2", "first")[0] == 1
    assert run("rename", "s-2", "../x")[0] == 2
    assert run("rename", "s-2")[0] == 2
    assert "name" not in data(run("rename", "s-2", "--none", "--json"))


NEW = ("-m", "scripted:script.json", "greet", "-n")
NAMING_COMMANDS = [("rename", "s-2"), ("fork", "made", "-n"), ("fork", "first", "--event", "4", "-n"), NEW]


@pytest.fixture
def naming(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same with a session that has restore points."""
    monkeypatch.setattr("sys.stdin", StringIO())
    (tmp_path / "script.json").write_text('["Hello."]')
    assert run(*NEW, "made")[0] == 0
    return run


@pytest.mark.parametrize("words", NAMING_COMMANDS, ids=" ".join)
def test_an_invalid_name_is_refused_by_every_command(naming: Run, words: tuple[str, ...]) -> None:
    before = data(naming("sessions", "--json"))
    for name in ("", "  ", ".", "..", "index", "Con.txt", "a/b"):
        code, _, error = naming(*words, name)
        assert (code, "(invalid-name)" in error) == (2, True), name
    assert data(naming("sessions", "--json")) == before


@pytest.mark.parametrize("words", NAMING_COMMANDS, ids=" ".join)
def test_f26_a_name_that_is_too_long_is_cut_by_every_command_which_says_so(
    naming: Run, words: tuple[str, ...]
) -> None:
    for typed, kept in (("x" * 65, "x" * 64), ("ﬀ" * 33, "f" * 64)):
        code, _, error = naming(*words, typed)
        assert (code, f"cut to 64 characters: {kept}" in error.replace("\n", "")) == (0, True), error
        assert kept in [line.get("name") for line in data(naming("sessions", "--json"))]


@pytest.mark.parametrize("words", NAMING_COMMANDS, ids=" ".join)
def test_a_name_that_fits_is_kept_whole_in_any_script(naming: Run, words: tuple[str, ...]) -> None:
    for typed, kept in (("x" * 64, "x" * 64), ("ü" * 64, "u" * 64), ("日本語", "日本語")):
        assert naming(*words, typed)[0] == 0
        assert kept in [line.get("name") for line in data(naming("sessions", "--json"))]
        assert naming("show", typed)[0] == 0


def test_search_names_session_and_turn(run: Run) -> None:
    code, out, _ = run("search", "docs")
    assert (code, out.startswith("first turn 2")) == (0, True)
    assert data(run("search", "fail", "test", "--json"))[0]["turn"] == 1
    hit = data(run("search", "docs", "--json"))[0]
    assert (hit["name"], hit["snippet"], hit["pieces"]) == (
        "first",
        "and now the docs",
        ["and now the ", "docs", ""],
    )
    assert out.endswith(": and now the docs\n")
    assert "holdfast show first --turn 2" in run("search", "docs")[2]
    shown = run("search", "docs", "--show")[1]
    assert "[2] you: and now the docs" in shown
    assert "failing" not in shown
    assert run("search", "nowhere")[0] == 1
    assert run("search", "!")[0] == 2


def test_a_session_is_exported_and_imported(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("export", "first", "-o", "out.zip")[1].strip() == "out.zip"
    assert run("export", "first", "-o", "out.zip")[0] == 2
    assert run("import", "out.zip")[0] == 1
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "other"))
    assert data(run("import", "out.zip", "--json"))["id"] == "s-1"
    assert run("verify", "first")[0] == 0
    code, _, error = run("import", "missing.zip")
    assert (code, "there is no file 'missing.zip'" in error) == (2, True)


@pytest.mark.parametrize("place", ["nowhere/x.zip", "file/x.zip", "x" * 300, "link.zip", ".", "/proc/x.zip"])
def test_an_unwritable_target_is_reported_and_left_unchanged(run: Run, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link.zip").symlink_to("nowhere.zip")
    before = sorted(tmp_path.iterdir())
    code, _, error = run("export", "first", "-o", place)
    assert (code, "(invalid-input)" in error, "choose another" in error) == (2, True, True)
    assert sorted(tmp_path.iterdir()) == before


def test_a_fork_has_the_history_up_to_its_point(run: Run) -> None:
    fork = data(run("fork", "first", "--event", "4", "-n", "branch", "--json"))
    assert (fork["turns"], fork["name"], fork["parent"]["seq"]) == (1, "branch", 4)
    assert run("fork", "first", "--event", "99")[0] == 2
    assert run("fork", "first", "--at", "99")[0] == 2
    assert run("fork", "first", "--event", "4", "-n", "first")[0] == 1


def test_prune_reports_what_it_deletes(run: Run) -> None:
    assert run("prune")[0] == 2
    assert run("prune", "--keep", "-1")[0] == 2
    assert run("prune", "--older-than", "soon")[0] == 2
    code, out, err = run("prune", "--keep", "0", "--dry-run")
    assert (code, out.split()[:4]) == (0, ["would", "be", "deleted", "s-2"])
    assert (
        out.endswith("1 turn) remove it<U+001B>[31m\n"),
        "1 session would be deleted, 1 would be kept" in err,
    ) == (
        True,
        True,
    )
    assert "kept (named)  s-1" in err
    report = data(run("prune", "--keep", "0", "--json"))
    assert ([one["session"] for one in report["pruned"]], report["kept"]) == (["s-2"], 1)


def test_a_pinned_session_is_not_pruned(run: Run) -> None:
    assert data(run("pin", "s-2", "--json"))["is_pinned"] is True
    assert data(run("prune", "--keep", "0", "--json"))["pruned"] == []
    run("pin", "s-2", "--off")
    assert len(data(run("prune", "--keep", "0", "--json"))["pruned"]) == 1


def test_deleting_needs_confirmation(run: Run, tmp_path: Path) -> None:
    assert run("delete", "s-2")[0] == 2
    (tmp_path / "home" / "damaged-1").mkdir()
    code, _, err = run("delete", "s-2", "--yes")
    assert (code, "damaged-1" in err) == (0, True), "files of a damaged database are not deleted, but named"
    assert run("delete", "s-2", "--yes")[0] == 1
    assert run("delete", "index", "--yes")[0] == 2, "it cannot be the id of a session"
    assert [line["id"] for line in data(run("sessions", "--json"))] == ["s-1"]


@pytest.mark.parametrize(
    ("key", "code", "output"), [("\x04", 3, "nothing was deleted"), ("y\n", 0, "deleted s-2")]
)
def test_at_a_terminal_only_an_explicit_yes_deletes(
    run: Run, tmp_path: Path, key: str, code: int, output: str
) -> None:
    with terminal("delete", "s-2", home=tmp_path, HOLDFAST_HOME=str(tmp_path / "home")) as typist:
        assert typist.wait_for("Delete it permanently? [y/N]")
        typist.type(key)
        assert typist.wait_for(output)
        assert typist.end() == code


def test_a_deleted_session_is_reported_as_deleted(run: Run) -> None:
    run("delete", "first", "--yes")
    run("prune", "--keep", "0")
    for reference, error in (
        ("first", "'s-1' was deleted on 20"),
        ("s-1", "deleted on"),
        ("s-2", "pruned on"),
    ):
        code, _, words = run("show", reference)
        assert (code, error in words, "holdfast import" in words) == (1, True, True)
    assert "there is no session" in run("show", "s-3")[2]


def test_an_empty_list_of_sessions_is_reported(run: Run, tmp_path: Path) -> None:
    run("prune", "--keep", "0", "--named-too")
    assert "no sessions" in run("verify", "--all")[2]
    assert data(run("verify", "--all", "--json")) == []
    code, _, error = run("export", "--all", "-o", "backup")
    assert (code, "no sessions" in error, (tmp_path / "backup").exists()) == (1, True, False)


def test_no_command_writes_a_known_secret(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary-1234")
    assert run("rename", "first", "sk-canary-1234")[0] == 0
    assert run("fork", "s-1", "--event", "4", "-n", "my-sk-canary-1234")[0] == 0
    run("search", "canary")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert b"canary" not in kept
    assert kept.count(b"[redacted]") >= 2


def test_nothing_is_left_of_a_deleted_session_but_its_tombstone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("open('canary-file.txt', 'w').write('canary-content')")
    assert run("exec", "code.py")[0] == 0
    assert run("proposals", "commit")[0] == 0
    (session,) = (path.name for path in (tmp_path / "home" / "sessions").iterdir())
    assert run("search", "canary")[0] == 0
    assert run("delete", session, "--yes")[0] == 0
    left = [path for path in (tmp_path / "home").rglob("*") if session in str(path)]
    assert left == []
    kept = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert b"canary-file" not in kept


def test_verify_and_rebuild_report_an_intact_store(run: Run) -> None:
    assert [found["session"] for found in data(run("verify", "--all", "--json"))] == ["s-2", "s-1"]
    assert data(run("rebuild-index", "--json")) == {"sessions": 2}


def test_rebuilding_removes_whatever_is_at_the_path_of_the_search_index(run: Run, tmp_path: Path) -> None:
    (tmp_path / "home" / "cache" / "search.db" / "inner").mkdir(parents=True)
    assert data(run("rebuild-index", "--json")) == {"sessions": 2}
    assert not (tmp_path / "home" / "cache" / "search.db").exists()
    assert run("search", "docs")[0] == 0


@pytest.mark.parametrize("command", OURS)
def test_every_command_has_help_with_an_example_and_its_exit_codes(run: Run, command: str) -> None:
    assert f"\n  {command}" in run("--help")[1]
    code, out, _ = run(command, "--help")
    assert code == 0
    assert re.search(rf"^ *holdfast {command}", out, re.MULTILINE)
    assert "Exit codes:" in out
    assert "--json" in out


async def test_the_resume_notice_shows_name_time_progress_and_open_escalations(disk: SqliteStore) -> None:
    journal = await disk.create(opened(name="my-session"))
    await journal.append(
        said(1, "Help me implement JWT authentication" + " please" * 20), replied(1), replied(1)
    )
    await journal.append(said(2), asked(2))
    summary = await disk.summary(journal.session)
    notice = resume_notice(summary, journal.recorded, now_ms=summary.created_ms + 7_200_000)
    for words in (
        "my-session",
        "Created: 2026-01-01T00:00:00.000Z (2h ago)",
        "4 (2 from user, 2 from assistant)",
    ):
        assert words in notice
    assert "First topic: Help me implement JWT authentication" in notice
    assert "waits for your approval" in notice


def test_all_sessions_are_exported_at_once_and_failed_imports_are_reported(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [one["session"] for one in data(run("export", "--all", "-o", "out", "--json"))] == ["s-2", "s-1"]
    assert run("export", "--all", "-o", "out")[0] == 2
    assert run("export", "--all", "first")[0] == 2
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    files = [str(tmp_path / "out" / name) for name in ("s-1.zip", "s-2.zip")]
    (tmp_path / "forged.zip").write_bytes(Path(files[0]).read_bytes()[:-7])
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "other"))
    code, out, err = run("import", files[0], "forged.zip", files[1])
    assert (code, out.split()) == (2, ["s-1", "s-2"])
    assert "forged.zip: " in err
    assert run("import", *files)[0] == 1


def test_an_export_includes_the_files_of_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    (tmp_path / "code.py").write_text("open('made.txt', 'w').write('by the agent')")
    (tmp_path / "open.yaml").write_text(
        "policy: open\nrules:\n  - name: write\n    allow: world.write\n    because: a test\n"
        "    examples: {matches: [{world.write: {path: a, content: b}}], misses: [{world.read: {path: a}}]}\n"
    )
    assert main(["exec", "-p", "open.yaml", "code.py"]) == 0
    assert main(["export", "-o", "one.zip"]) == 0
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "other"))
    assert main(["import", "one.zip"]) == 0
    (made,) = (tmp_path / "other" / "sessions").glob("*/workspace/made.txt")
    assert made.read_text() == "by the agent"


def test_a_long_list_is_shown_one_item_per_line(tmp_path: Path) -> None:
    code = "open('a.txt').read() if world.exists(path='a.txt') else list(range(3000))"
    assert holdfast("exec", "-", home=tmp_path, stdin=code).returncode == 0
    shown = holdfast("show", "--full", home=tmp_path).stdout.splitlines()
    assert "    value: [" in shown
    assert "      1234," in shown
