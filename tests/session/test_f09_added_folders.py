"""F09: `--add-dir` and `dirs` open further folders, as grants that can be listed and revoked."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import Needs, Ok, Proposed
from holdfast.core.errors import InvalidInput
from holdfast.models import ScriptedModel, use
from holdfast.session import Session, Settings


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", settings=Settings(dirs=(f"{tmp_path}/notes:ro",)))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("salt")
    yield started
    await started.close()


async def run(runtime: Runtime, code: str, **options: object) -> tuple[Session, object]:
    model = ScriptedModel([use("execute_code", {"code": code}), "Done."])
    session = await runtime.create(model=model, policy="ask-always", **options)  # type: ignore[arg-type]
    return session, await session.send("Do it.")


async def test_a_folder_of_the_configuration_is_read_without_asking(runtime: Runtime, tmp_path: Path) -> None:
    session, outcome = await run(runtime, f"open('{tmp_path}/notes/a.txt').read()")
    assert isinstance(outcome, Ok)
    [grant] = session.grants()
    assert grant.rule == "add-dir"


async def test_a_read_only_folder_asks_before_a_change(runtime: Runtime, tmp_path: Path) -> None:
    _, outcome = await run(runtime, f"world.write(path='{tmp_path}/notes/b.txt', content='x')")
    assert isinstance(outcome, Needs)


async def test_an_added_folder_is_written_without_asking_and_no_other(
    runtime: Runtime, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    code = f"world.write(path='{tmp_path}/lib/b.txt', content='x')\nworld.read(path='{tmp_path}/secret.txt')"
    session, outcome = await run(runtime, code, dirs=[f"{tmp_path}/lib"])
    assert (tmp_path / "lib" / "b.txt").read_text() == "x"
    assert isinstance(outcome, Needs)
    [waiting] = session.escalations()
    assert waiting.call.arguments["path"] == f"{tmp_path}/secret.txt"
    assert not isinstance(outcome, Proposed)


async def test_a_revoked_folder_stays_revoked_when_the_session_is_resumed(
    runtime: Runtime, tmp_path: Path
) -> None:
    session, _ = await run(runtime, "1")
    [grant] = session.grants()
    await session.revoke(grant.id)
    await session.close()
    resumed = await runtime.resume(session.id, model=ScriptedModel([]))
    assert resumed.grants() == ()


@pytest.mark.parametrize("folder", ["/", "/etc", "/etc:ro", "~", "/no/such/folder"])
async def test_a_system_folder_or_the_home_cannot_be_added(runtime: Runtime, folder: str) -> None:
    with pytest.raises(InvalidInput):
        await runtime.create(model=ScriptedModel([]), policy="ask-always", dirs=[folder])
