"""A whole runtime over a real home: what it hands out itself is written nowhere, and what it opened it closes."""

import re
import shutil
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.provider_stub import StubServer

import holdfast.workspace
from holdfast.app import Runtime
from holdfast.core import (
    EXTERNAL,
    Call,
    FakeClock,
    FunctionToolset,
    Ok,
    Parked,
    Refused,
    Response,
    Returned,
    Tool,
)
from holdfast.core.errors import HoldfastError, InvalidInput, ModelMissing, PathRefused, SessionHeld
from holdfast.models import ModelSettings, ScriptedModel, create_model, say
from holdfast.models.deferred_model import DeferredModel
from holdfast.models.provider_model import ProviderModel
from holdfast.policy import FixedPolicy
from holdfast.session import ExternalAgentSession, Session, Settings
from holdfast.store import Home

LOOK = Tool(name="desk.look", parameters={"type": "object"}, roles={})
MOVE = Tool(name="desk.move", parameters={"type": "object"}, roles={})
BURN = Tool(name="desk.burn", parameters={"type": "object"}, roles={})
DESK = FunctionToolset({tool.name: (tool, lambda _: "done") for tool in (LOOK, MOVE, BURN)})
CANARY = "sk-canary-2f8d1c0b9e7a"
POLICY = FixedPolicy(default="deny", verdicts={"desk.look": "allow", "desk.move": "escalate"})


@pytest.mark.parametrize(
    ("variable", "model_requests"),
    [("ANTHROPIC_API_KEY", ModelSettings()), ("COMPANY_KEY", ModelSettings(key_variable="COMPANY_KEY"))],
)
async def test_a_known_key_is_in_no_file_at_rest(
    variable: str, model_requests: ModelSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, CANARY)
    runtime = await Runtime.start(home=tmp_path / "home", settings=Settings(model_requests=model_requests))
    await say_it(await runtime.create(model=ScriptedModel([say(f"the key is {CANARY}")])))
    await runtime.close()
    assert files_with_it(tmp_path) == []


@pytest.mark.parametrize("is_resumed", [False, True])
async def test_a_keyring_key_is_in_no_file_at_rest(
    is_resumed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = SimpleNamespace(
        get_password=lambda service, user: CANARY, errors=SimpleNamespace(KeyringError=RuntimeError)
    )
    monkeypatch.setitem(sys.modules, "keyring", ring)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    model = "anthropic:claude-sonnet-5-5"
    async with StubServer([f"the key is {CANARY}"], key=CANARY) as stub:
        settings = Settings(model_requests=ModelSettings(base_url=stub.url))
        runtime = await Runtime.start(home=tmp_path / "home", settings=settings)
        session = await runtime.create(name=f"my {CANARY}", model=model)
        if is_resumed:
            await runtime.close()
            runtime = await Runtime.start(home=tmp_path / "home", settings=settings)
            session = await runtime.resume(session.id)
        await say_it(session)
        assert len(stub.requests) == 1
        await runtime.close()
    assert files_with_it(tmp_path) == []


async def say_it(session: Session) -> None:
    """Have the key said by the person, the model and the code."""
    outcome = await session.send(f"is it {CANARY}?")
    assert isinstance(outcome, Ok), outcome
    await session.execute(f"print('{CANARY}')\nopen('a.txt', 'w').write('plain')")


def files_with_it(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


async def test_local_weights_are_read_from_the_given_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "another"))
    runtime = await Runtime.start(home=tmp_path / "home")
    with pytest.raises(ModelMissing, match=re.escape(str(runtime.home.models / "tiny.gguf"))):
        await runtime.create(model="local:tiny")
    runtime.home.models.mkdir()
    (runtime.home.models / "tiny.gguf").write_bytes(b"GGUF")
    session = await runtime.create(model="local:tiny")
    assert session.status.model == "local:tiny"
    await runtime.close()


async def test_a_file_named_like_a_policy_does_not_replace_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project").write_text("an agent wrote this")
    runtime = await Runtime.start(home=tmp_path / "home")
    session = await runtime.create(model=ScriptedModel([]), policy="project")
    assert session.status.policy == "project"
    await session.close()
    again = await runtime.resume(session.id, needs_model=False)
    assert again.status.policy == "project"
    await runtime.close()


async def test_a_session_that_failed_to_open_can_be_resumed_after_the_fix(
    tmp_path: Path,
) -> None:
    runtime = await Runtime.start(home=tmp_path / "home")
    session = await runtime.create(model=ScriptedModel([]))
    await session.close()
    runtime.home.grants.write_text("{ damaged")
    with pytest.raises(HoldfastError):
        await runtime.resume(session.id, needs_model=False)
    runtime.home.grants.unlink()
    assert (await runtime.resume(session.id, needs_model=False)).id == session.id
    await runtime.close()


async def test_a_fork_keeps_the_policy_its_parent_switched_to(tmp_path: Path) -> None:
    runtime = await Runtime.start(home=tmp_path / "home")
    session = await runtime.create(model=ScriptedModel([say("hello")]), policy="project")
    await session.close()
    session = await runtime.resume(session.id, model=ScriptedModel([say("hello")]), policy="ask-always")
    await session.send("hi")
    fork = await runtime.fork(session.id, model=ScriptedModel([]))
    assert fork.status.policy == "ask-always"
    await runtime.close()


# -- a gate without an agent of ours


async def ask(keeper: ExternalAgentSession, operation: str) -> object:
    return await keeper.submit(
        Call(id=await keeper.next_call(), operation=operation, arguments={}, principal=EXTERNAL)
    )


async def test_calls_of_an_external_agent_are_gated_and_recorded(tmp_path: Path) -> None:
    runtime = await Runtime.start(home=tmp_path / "home")
    async with runtime.gate(
        DESK, workspace=tmp_path, transport="test", description="a friend", policy=POLICY
    ) as keeper:
        assert {tool.name for tool in keeper.tools()} == {"desk.look", "desk.move"}
        assert await ask(keeper, "desk.look") == Returned(value="done")
        assert isinstance(await ask(keeper, "desk.burn"), Refused)
        parked = await ask(keeper, "desk.move")
        assert isinstance(parked, Parked)
        await keeper.resolve(
            parked.escalation, Response(verdict="deny"), principal=EXTERNAL, transport="test"
        )
        await keeper.end()
    session = await runtime.resume(keeper.session, needs_model=False, policy=POLICY)
    assert [entry.operation for entry in session.audit()] == ["desk.look", "desk.burn", "desk.move"]
    assert [turn.asked for turn in session.history()] == ["a friend"]
    await runtime.close()


async def test_a_returning_external_agent_continues_its_session(tmp_path: Path) -> None:
    runtime = await Runtime.start(home=tmp_path / "home")
    for number in (1, 2):
        async with runtime.gate(
            DESK,
            workspace=tmp_path,
            transport="test",
            description="a friend",
            policy=POLICY,
            session="friend-1",
        ) as keeper:
            assert await keeper.next_call() == f"1.{number}"
            await keeper.submit(Call(id=f"1.{number}", operation="desk.look", arguments={}))  # type: ignore[arg-type]
            with pytest.raises(SessionHeld):
                async with runtime.gate(
                    DESK, workspace=tmp_path, transport="test", description="another", session="friend-1"
                ):
                    pass
    await runtime.close()


async def test_two_external_agents_cannot_share_an_approval_folder(tmp_path: Path) -> None:
    runtime = await Runtime.start(home=tmp_path / "home")
    folder = tmp_path / "questions"

    def entering() -> AbstractAsyncContextManager[ExternalAgentSession]:
        return runtime.gate(
            DESK,
            workspace=tmp_path,
            transport="test",
            description="a friend",
            policy=POLICY,
            escalations=folder,
        )

    async with entering() as keeper:
        parked = await ask(keeper, "desk.move")
        assert isinstance(parked, Parked)
        with pytest.raises(InvalidInput, match="another process uses the folder"):
            async with entering():
                pass
        assert [path.name for path in folder.iterdir()] == [f"request-{parked.escalation}.json"]
    async with entering():
        assert list(folder.iterdir()) == []
    await runtime.close()


async def test_a_call_number_is_never_reused(
    tmp_path: Path,
) -> None:
    runtime = await Runtime.start(home=tmp_path / "home")
    given = []
    for _ in range(2):
        async with runtime.gate(
            DESK,
            workspace=tmp_path,
            transport="test",
            description="a friend",
            policy=POLICY,
            session="friend",
        ) as keeper:
            given += [await keeper.next_call(), await keeper.next_call()]  # the first is withdrawn
            await keeper.submit(Call(id=given[-1], operation="desk.look", arguments={}))
    assert given == ["1.1", "1.2", "1.3", "1.4"]
    await runtime.close()


async def test_calls_of_an_external_agent_after_a_pause_are_a_new_turn(tmp_path: Path) -> None:
    clock = FakeClock()
    runtime = await Runtime.start(home=tmp_path / "home", clock=clock)
    async with runtime.gate(
        DESK, workspace=tmp_path, transport="test", description="a friend", policy=POLICY
    ) as keeper:
        await ask(keeper, "desk.look")
        clock.advance(299)
        await ask(keeper, "desk.look")
        clock.advance(301)
        await ask(keeper, "desk.look")
        await keeper.begin("tidy up")
        await ask(keeper, "desk.look")
        await keeper.begin("move it")
        parked = await ask(keeper, "desk.move")
        assert isinstance(parked, Parked)
        clock.advance(200)
        await ask(keeper, "desk.look")  # what waits is part of the same turn
        await keeper.end()
    session = await runtime.resume(keeper.session, needs_model=False, policy=POLICY)
    assert [entry.call for entry in session.audit()] == ["1.1", "1.2", "2.1", "3.1", "4.1", "4.2"]
    assert [turn.asked for turn in session.history()] == ["a friend", "a friend", "tidy up", "move it"]
    await runtime.close()


@pytest.mark.parametrize("is_ours", [True, False])
async def test_a_session_closes_only_the_model_it_opened(is_ours: bool, tmp_path: Path) -> None:
    spec = "server:http://127.0.0.1:9/v1#nobody"
    given = create_model(spec)
    runtime = await Runtime.start(home=tmp_path / "home")
    session = await runtime.create(model=spec if is_ours else given)
    deferred = session._model_step.model
    assert isinstance(deferred, DeferredModel)
    model = await deferred.load()
    assert isinstance(model, ProviderModel)
    await session.close()
    assert model._client.is_closed is is_ours
    await given.close()
    await runtime.close()


@pytest.mark.parametrize("replaced", ["above/work", "above"])
@pytest.mark.parametrize("has_folder", [True, False])
async def test_a_workspace_replaced_by_a_symlink_is_refused_and_its_target_untouched(
    tmp_path: Path, replaced: str, has_folder: bool
) -> None:
    work, elsewhere = tmp_path / "above" / "work", tmp_path / "elsewhere"
    work.mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "precious.txt").write_text("keep")
    if has_folder:
        (elsewhere / "work").mkdir()
    before = sorted(elsewhere.rglob("*"))
    runtime = await Runtime.start(home=tmp_path / "home")
    session = await runtime.create(model=ScriptedModel([say("Fine.")]), workspace=work)
    await session.send("hello")
    await session.close()
    place = tmp_path / replaced
    place.rename(tmp_path / "moved")
    place.symlink_to(elsewhere)
    with pytest.raises(PathRefused, match=str(place)) as refused:
        await runtime.resume(session.id, needs_model=False)
    assert refused.value.hint
    await runtime.close()
    assert sorted(elsewhere.rglob("*")) == before


async def test_a_missing_project_folder_is_created_again(tmp_path: Path) -> None:
    (tmp_path / "above" / "work").mkdir(parents=True)
    runtime = await Runtime.start(home=tmp_path / "home")
    session = await runtime.create(workspace=tmp_path / "above" / "work", needs_model=False)
    await session.close()
    shutil.rmtree(tmp_path / "above")
    again = await runtime.resume(session.id, needs_model=False)
    assert again.workspace.files() == ()
    await runtime.close()


async def test_a_symlinked_data_directory_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    home = tmp_path / "link" / "home"
    runtime = await Runtime.start(home=home)
    session = await runtime.create(needs_model=False, policy=FixedPolicy(default="allow"))
    for text in ("one", "two"):
        await session.execute(f"open('a.txt', 'w').write('{text}')")
    await session.rewind(1)
    fork = await runtime.fork(session.id, needs_model=False, policy=FixedPolicy(default="allow"))
    assert fork.workspace.read("a.txt") == session.workspace.read("a.txt") == b"one"
    assert holdfast.workspace.read(session.id, "a.txt", home=Home(home)) == b"one"
    await runtime.close()
