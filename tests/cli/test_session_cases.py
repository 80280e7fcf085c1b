"""The conformance cases for names and ids, at the command line and in the library."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.cli.commands import Done, Run, holdfast
from tests.cli.terminals import prepared
from tests.store.test_conformance import IDS, NAMES, PRECISE

import holdfast.workspace as workspace
from holdfast.app import Runtime
from holdfast.core.errors import HoldfastError, InvalidId, InvalidName, SessionNotFound
from holdfast.policy import FixedPolicy
from holdfast.session import Settings
from holdfast.store import Home


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command with an empty data directory and no input."""

    def command(*words: str) -> Done:
        done = holdfast(*words, home=tmp_path)
        return Done(done.returncode, done.stdout, done.stderr)

    return command


ALLOW = FixedPolicy(default="allow")


def written(row: dict[str, str]) -> tuple[str, str]:
    return json.loads(row["input_json"]), PRECISE.get(row["ours"], row["ours"])


def kind(text: str) -> str:
    return "error:empty" if "empty" in text else "error:reserved" if "reserved" in text else "error:invalid"


def named(run: Run) -> list[str | None]:
    return [each.get("name") for each in json.loads(run("sessions", "--json").out)]


def test_names_at_the_command_line_are_as_written(run: Run, tmp_path: Path) -> None:
    assert run(*prepared(tmp_path, "Yes."), "-n", "first", "hello").code == 0
    for case, row in NAMES.items():
        given, wanted = written(row)
        if "\0" in given:
            continue  # an argument of a program cannot contain it
        before = named(run)
        done = run("rename", "first", "--", given)
        if not wanted.startswith("ok:"):
            assert (done.code, kind(done.err)) == (2, wanted), (case, done.err)
            assert named(run) == before, case
            continue
        assert done.code == 0, (case, done.err)
        assert named(run) == [wanted[3:]], case
        assert ("was cut to 64" in done.err) == (len(given) > 64), (case, done.err)
        assert run("show", "--", given).code == 0, "and is found as it was typed"
        assert run("rename", wanted[3:], "first").code == 0


async def test_names_in_the_library_are_as_written(tmp_path: Path) -> None:
    runtime = await Runtime.start(home=tmp_path / "home", settings=Settings(), servers=())
    kept = await runtime.create(policy=ALLOW, needs_model=False)
    for case, row in NAMES.items():
        given, wanted = written(row)
        before = len(await runtime.store.sessions())
        if not wanted.startswith("ok:"):
            for attempt in (runtime.create(policy=ALLOW, needs_model=False, name=given), kept.rename(given)):
                with pytest.raises(InvalidName) as refused:
                    await attempt
                assert kind(f"{refused.value} {refused.value.hint}") == wanted, case
            assert len(await runtime.store.sessions()) == before, case
            continue
        session = await runtime.create(policy=ALLOW, needs_model=False, name=given)
        assert session.status.name == wanted[3:], case
        notes = [note.code for note in session.diagnostics()]
        assert ("name-shortened" in notes) == (len(given) > 64), case
        await session.close()
        await runtime.store.delete(session.id)
        await kept.rename(given)
        assert kept.status.name == wanted[3:], case
        await kept.rename(None)
    await runtime.close()


@pytest.mark.parametrize("command", ["show", "delete", "resume", "fork", "export", "files", "-r"])
def test_ids_at_the_command_line_are_as_written(run: Run, tmp_path: Path, command: str) -> None:
    Home(tmp_path / "holdfast").prepare()
    model = prepared(tmp_path, "Yes.")
    for case, row in IDS.items():
        given, wanted = written(row)
        if "\0" in given or wanted == "ok" or not given.strip():
            continue
        words = {
            "delete": ("delete", "--yes", "--", given),
            "files": ("files", "ls", "--", given),
            "export": ("export", "--", given),
            "-r": (*model, f"--resume={given}", "hello"),
        }.get(command, (command, "--", given))
        done = run(*words)
        assert done.code == 2, (case, done.err)
        assert "invalid-id" in done.err, (case, done.err)


async def test_ids_in_the_library_are_as_written(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    runtime = await Runtime.start(home=home.root, settings=Settings(), servers=())
    (home.root / "sessions" / "stays").mkdir()
    for case, row in IDS.items():
        given, wanted = written(row)
        if wanted == "ok":
            session = await runtime.create(policy=ALLOW, needs_model=False, session=given)
            assert session.id == given
            assert workspace.create(given, home=home).path.is_dir()
            workspace.delete(given, home=home)
            continue
        for attempt in (
            lambda given=given: asyncio.run(_create(home, given)),
            lambda given=given: workspace.create(given, home=home),
            lambda given=given: workspace.delete(given, home=home),
            lambda given=given: workspace.read(given, "a", home=home),
        ):
            with pytest.raises(InvalidId):
                await asyncio.to_thread(attempt)
        with pytest.raises(InvalidId if given else SessionNotFound):
            await runtime.resume(given, needs_model=False)
        assert (home.root / "sessions" / "stays").is_dir(), case
    await runtime.close()


async def _create(home: Home, given: str) -> None:
    runtime = await Runtime.start(home=home.root, settings=Settings(), servers=())
    try:
        await runtime.create(policy=ALLOW, needs_model=False, session=given)
    except HoldfastError:
        assert given not in {each.id for each in await runtime.store.sessions()}
        raise
    finally:
        await runtime.close()
