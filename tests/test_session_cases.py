"""The cases of other projects with their correct results, at the two doors of a user: the command line and the library."""

import asyncio
import csv
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Run, run

from holdfast import Runtime
from holdfast.core.errors import (
    InvalidConfig,
    InvalidId,
    InvalidInput,
    InvalidName,
    PathRefused,
    SessionNotFound,
)
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.teams import load_roster
from holdfast.teams.server.tools import timeout_of
from holdfast.world import list_files

__all__ = ["run"]
_TABLES = (
    "store/data/session-cases.tsv",
    "policy/data/glob-cases.tsv",
    "teams/data/team-cases.tsv",
    "world/data/session-paths.tsv",
)
_PRECISE = {
    "ok:<generated id, display name kept>": "ok:日本語",
    "ok:my.jsonx and survives index rebuild": "ok:my.jsonx",
}
Cases = dict[str, tuple[Any, str]]


def cases_of(operation: str) -> Cases:
    """The input and the right result of each case of an operation."""
    found: Cases = {}
    for table in _TABLES:
        with (Path(__file__).parent / table).open() as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                if row["operation"] == operation:
                    found[row["id"]] = json.loads(row["input_json"]), _PRECISE.get(row["ours"], row["ours"])
    assert found, operation
    return found


def right(cases: Cases) -> dict[str, str]:
    return {case: result for case, (_, result) in cases.items()}


def kind_of(error: str) -> str:
    return "error:empty" if "empty" in error else "error:reserved" if "reserved" in error else "error:invalid"


@asynccontextmanager
async def library(home: Path) -> AsyncIterator[Runtime]:
    runtime = await Runtime.start(home=home, settings=Settings(), servers=())
    try:
        yield runtime
    finally:
        await runtime.close()


async def created(runtime: Runtime, *, name: str | None = None, session: str | None = None) -> Session:
    policy = FixedPolicy(default="allow")
    return await runtime.create(policy=policy, needs_model=False, name=name, session=session)


def a_session(home: Path) -> str:
    """The id of a new session that no process has open."""

    async def create() -> str:
        async with library(home) as runtime:
            return (await created(runtime)).id

    return asyncio.run(create())


def in_library(home: Path, cases: Cases, attempt: Callable[[Runtime, Any], Awaitable[str]]) -> dict[str, str]:
    async def work() -> dict[str, str]:
        async with library(home) as runtime:
            return {case: await attempt(runtime, given) for case, (given, _) in cases.items()}

    return asyncio.run(work())


async def save_name(runtime: Runtime, given: str) -> str:
    try:
        session = await created(runtime, name=given)
    except InvalidName as refusal:
        return kind_of(f"{refusal} {refusal.hint}")
    name = (await runtime.store.summary(session.id)).name
    await session.close()
    await runtime.store.delete(session.id)
    return f"ok:{name}"


async def load_id(runtime: Runtime, given: str) -> str:
    try:
        await runtime.resume(given, needs_model=False)
    except SessionNotFound:
        return "not found"
    except InvalidId:
        return "error:invalid"
    return "ok"


async def session_id(runtime: Runtime, given: str) -> str:
    try:
        session = await created(runtime, session=given)
    except InvalidId as refusal:
        return "error:reserved" if "reserved" in f"{refusal} {refusal.hint}" else "error:invalid"
    await session.close()
    return "ok"


async def session_path(runtime: Runtime, given: str) -> str:
    session = await created(runtime)
    try:
        session.workspace.write(given, b"x")
        [path] = list_files(session.workspace, include_hidden=True)
    except PathRefused:
        return "error:invalid"
    finally:
        await session.close()
    return f"ok:{path}"


_SLEEP = "import time\ntime.sleep(1e6)"
_SLEPT = re.compile(r"sleep longer than its (\d+) s|(from 1 to 300)")


async def run_seconds(runtime: Runtime, given: float | None) -> str:
    session = await created(runtime)
    try:
        return _seconds_in(repr(await session.execute(_SLEEP, timeout_seconds=given)))
    except InvalidInput as refusal:
        assert not session.history()
        return _seconds_in(str(refusal))


def _seconds_in(text: str) -> str:
    found = _SLEPT.search(text)
    assert found is not None, text
    return found[1] or "error:invalid"


@pytest.mark.parametrize(
    "attempt", [save_name, load_id, session_id, session_path, run_seconds], ids=lambda each: each.__name__
)
def test_the_library_gives_the_right_results(
    tmp_path: Path, attempt: Callable[[Runtime, Any], Awaitable[str]]
) -> None:
    cases = cases_of(attempt.__name__)
    assert in_library(tmp_path / "home", cases, attempt) == right(cases)


def test_the_command_line_gives_sessions_the_right_names(tmp_path: Path, run: Run) -> None:
    session, cases, seen = a_session(tmp_path / "holdfast"), cases_of("save_name"), {}
    for case, (given, _) in cases.items():
        done = run("rename", "--json", "--", session, given)
        assert done.code in (0, 2), done.err
        seen[case] = f"ok:{json.loads(done.out)['name']}" if done.code == 0 else kind_of(done.err)
        assert ("64" in done.err) == (len(given) > 64), "a name that is cut off is said"
    assert seen == right(cases)


def test_the_command_line_opens_no_session_by_an_invalid_id(tmp_path: Path, run: Run) -> None:
    kept = a_session(tmp_path / "holdfast")
    for case, (given, result) in (cases_of("load_id") | cases_of("session_id")).items():
        if result == "ok":
            continue
        for words in (("show",), ("files", "ls"), ("delete", "--yes")):
            done = run(*words, "--", given)
            assert done.code != 0, (case, words, done.out)
            assert "internal" not in done.err
            assert "Traceback" not in done.err
    assert kept in run("sessions", "--json").out, "nothing was deleted"


@pytest.mark.parametrize("patterns", ['["**/*"]', '["src/**/*","test/**/*"]'])
def test_the_command_line_judges_paths_by_their_patterns(tmp_path: Path, run: Run, patterns: str) -> None:
    policy = "policy: cases\nrules:\n  - name: some\n    allow: [world.write]\n    paths: " + patterns
    (tmp_path / "cases.yaml").write_text(policy + "\n    because: the cases say so\n")
    policy_file = str(tmp_path / "cases.yaml")
    cases, seen = cases_of(f"glob {patterns}"), {}
    for case, (given, _) in cases.items():
        call = json.dumps({"operation": "world.write", "arguments": {"path": given, "content": "x"}})
        done = run("policy", "check", "--policy", policy_file, "--json", "--call", call)
        seen[case] = json.loads(done.out)["decision"]
        if given.endswith("/"):  # the policy judges the folder; the write itself is refused
            (tmp_path / "code.py").write_text(f"world.write(path={given!r}, content='x')")
            seen[case] = "deny" if run("exec", str(tmp_path / "code.py"), "-p", policy_file).code else "allow"
    assert seen == right(cases)


def test_the_command_line_puts_files_where_they_belong(tmp_path: Path, run: Run) -> None:
    (tmp_path / "local").write_text("x")
    cases, seen = cases_of("session_path"), {}
    for case, (given, _) in cases.items():
        session = a_session(tmp_path / "holdfast")
        done = run("files", "put", "--", session, str(tmp_path / "local"), given)
        listed = run("files", "ls", "-a", session).out.split()
        seen[case] = f"ok:{listed[-1]}" if done.code == 0 else "error:invalid"
        assert "internal" not in done.err
    assert seen == right(cases)


def roster_for(folder: Path, team: str, project: str) -> str:
    """A roster with one team, whose project is an existing folder if it is absolute."""
    if project.startswith("/"):
        (folder / project[1:]).mkdir(parents=True, exist_ok=True)
        project = str(folder / project[1:])
    return f"teams:\n  {json.dumps(team)}: {{project: {json.dumps(project)}, member: scripted}}\n"


@pytest.mark.parametrize("operation", ["team_name", "project_path"])
def test_the_library_and_the_command_line_accept_the_same_teams(
    tmp_path: Path, run: Run, operation: str
) -> None:
    file = tmp_path / "teams.yaml"
    for case, (given, result) in cases_of(operation).items():
        team, project = (given, "/project") if operation == "team_name" else ("backend", given)
        file.write_text(roster_for(tmp_path / "root", team, project))
        is_refused = result == "error:invalid"
        with pytest.raises(InvalidConfig) if is_refused else nullcontext():
            load_roster(file)
        for words in (("check",), ("ask", team, "hello")):
            done = run("teams", "--file", str(file), *words)
            assert (done.code != 0) == is_refused, (case, words, done.err)
            assert "internal" not in done.err


def test_the_library_and_the_command_line_wait_as_long_as_the_cases_say(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "teams.yaml"
    file.write_text(roster_for(tmp_path / "root", "backend", "/project"))
    for case, (given, result) in cases_of("timeout_ms").items():
        is_refused = result == "error:invalid"
        with pytest.raises(InvalidInput) if is_refused else nullcontext():
            timeout_of(given)
        if (
            isinstance(given, int) and given
        ):  # in seconds, so half a millisecond is fine; forever is without the option
            done = run(
                "teams", "--file", str(file), "ask", "backend", "hello", "--seconds", str(given / 1000)
            )
            assert (done.code == 2) == is_refused, (case, done.err)


def test_the_command_line_limits_the_time_of_a_run(tmp_path: Path, run: Run) -> None:
    (tmp_path / "sleep.py").write_text(_SLEEP)
    cases, seen = cases_of("run_seconds"), {}
    for case, (given, _) in cases.items():
        done = run("exec", str(tmp_path / "sleep.py"), *(() if given is None else ("--timeout", str(given))))
        seen[case] = _seconds_in(done.out + done.err)
        assert done.code == (2 if seen[case] == "error:invalid" else 1), done.err
    assert seen == right(cases)
