"""Faults that a host or a user met in sessions, names and copies, each through the library or the command line."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Run, run
from tests.store.test_session_cases import NAMES, REFUSED_IDS, REFUSED_NAMES

import holdfast
from holdfast import Error, FixedPolicy, Runtime, ScriptedModel, workspace
from holdfast.core.errors import (
    ContextExceeded,
    HoldfastError,
    InvalidId,
    InvalidInput,
    InvalidName,
    InvalidPolicy,
)
from holdfast.guests import ScriptedEngine
from holdfast.store import Home

__all__ = ["run"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def test_f26_a_closed_session_says_so_even_if_a_turn_was_open(home: Path) -> None:
    model = ScriptedModel([holdfast.use("execute_code", {"code": "open('/etc/hosts').read()"})])
    runtime = await Runtime.start(home=home)
    session = await runtime.create(model=model, policy="ask-always")
    assert isinstance(await session.send("hi"), holdfast.Needs)
    assert str(session.activity) == "waiting"
    await session.close()
    assert str(session.activity) == "closed"
    await runtime.close()


async def new_session() -> str:
    async with holdfast.open(needs_model=False) as session:
        return session.id


PYTHON_ONLY = "policy: python-only\nsandboxes: [python]\nrules: []\n"


@pytest.mark.parametrize("id", [None, "mine"])
async def test_f26_a_failed_create_leaves_no_session_and_its_id_is_free(
    home: Path, tmp_path: Path, id: str | None
) -> None:
    (tmp_path / "python-only.yaml").write_text(PYTHON_ONLY)
    runtime = await Runtime.start(home=home)
    with pytest.raises(InvalidInput, match="allows code to run in python"):
        await runtime.create(
            session=id,
            policy=str(tmp_path / "python-only.yaml"),
            sandbox="lisp",
            name="work",
            needs_model=False,
        )
    assert await runtime.store.sessions() == []
    again = await runtime.create(session=id, name="work", needs_model=False)
    assert again.status.name == "work"
    await runtime.close()


async def test_f26_a_failed_fork_leaves_no_session(home: Path) -> None:
    runtime = await Runtime.start(home=home)
    session = await runtime.create(needs_model=False)
    await session.execute("1")
    runtime.home.grants.write_text("{ damaged")
    with pytest.raises(HoldfastError):
        await runtime.fork(session.id, needs_model=False)
    assert [each.id for each in await runtime.store.sessions()] == [session.id]
    await runtime.close()


async def test_f26_a_failed_create_keeps_files_that_were_there_before(home: Path, tmp_path: Path) -> None:
    (tmp_path / "python-only.yaml").write_text(PYTHON_ONLY)
    runtime = await Runtime.start(home=home)
    workspace.create("mine", home=Home(home))
    workspace.write("mine", "precious.txt", "keep", home=Home(home))
    with pytest.raises(InvalidInput):
        await runtime.create(
            session="mine",
            policy=str(tmp_path / "python-only.yaml"),
            sandbox=ScriptedEngine(),
            needs_model=False,
        )
    assert workspace.read("mine", "precious.txt", home=Home(home)) == b"keep"
    await runtime.close()


@pytest.mark.parametrize("said", ["Context window exceeded: m: too long", "too long"])
async def test_f26_the_words_context_window_exceeded_are_said_once(home: Path, said: str) -> None:
    def fail(prompt: holdfast.Prompt) -> holdfast.Reply:
        raise ContextExceeded(said)

    async with holdfast.open(ScriptedModel([fail]), home=home) as session:
        outcome = await session.send("hi")
    assert isinstance(outcome, Error)
    assert outcome.message.count("Context window exceeded") == 1


def test_f26_a_session_with_a_script_of_its_own_does_not_play_the_demo(run: Run) -> None:
    async def make() -> None:
        async with holdfast.open(ScriptedModel(["Mine."])) as session:
            await session.send("hi")

    asyncio.run(make())
    done = run("-c", "again")
    assert done.code != 0
    assert "--model" in done.err
    assert "read the project" not in done.out + done.err


def test_f26_dot_files_are_listed_on_request(run: Run) -> None:
    made = workspace.create()
    files = (".config/settings", ".env", "a/.hidden/x.txt", "plain.txt")
    for path in files:
        workspace.write(made.session, path, "x")
    assert workspace.list_files(made.session) == ("plain.txt",)
    assert workspace.list_files(made.session, include_hidden=True) == files
    assert workspace.list_files(made.session, "*env", include_hidden=True) == (".env",)
    assert workspace.list_files(made.session, "*.env", include_hidden=True) == (".env",)
    assert workspace.list_files(made.session, "x*", include_hidden=True) == ()


def test_f26_the_command_line_lists_dot_files_and_reports_links_that_it_drops(
    run: Run, tmp_path: Path
) -> None:
    id = asyncio.run(new_session())
    source = tmp_path / "source"
    source.mkdir()
    (source / ".env").write_text("x")
    (source / "link").symlink_to("/etc/hostname")
    done = run("files", "put", id, str(source))
    assert done.code == 0
    assert f"skipped {source / 'link'}" in done.err
    assert ".env" not in run("files", "ls", id).out
    assert "source/.env" in run("files", "ls", "--all", id).out


@pytest.mark.parametrize(
    ("given", "kept"),
    [("Straße", "strasse"), ("Łódź", "lodz"), ("smørrebrød", "smorrebrod"), ("æther", "aether")],
)
async def test_f26_a_latin_letter_is_kept_in_ascii(home: Path, given: str, kept: str) -> None:
    async with holdfast.open(needs_model=False, home=home, name=given) as session:
        assert session.status.name == kept


async def test_f26_a_name_that_is_too_long_is_cut_with_a_note(home: Path) -> None:
    async with holdfast.open(needs_model=False, home=home, name="a" * 100) as session:
        assert session.status.name == "a" * 64
        assert [note.code for note in session.notes()] == ["name-shortened"]


def test_f26_the_command_line_cuts_a_long_name_with_a_note(run: Run) -> None:
    done = run("rename", asyncio.run(new_session()), "b" * 70)
    assert done.code == 0
    assert f"cut to 64 characters: {'b' * 64}" in done.err


# -- the numbered cases of other projects, through the library and the command line


@pytest.fixture
def session_id(run: Run) -> str:
    return asyncio.run(new_session())


def test_f26_every_name_of_the_cases_is_stored_by_both_doors(run: Run, session_id: str, home: Path) -> None:
    async def through_the_library() -> None:
        runtime = await Runtime.start(home=home)
        for case, (given, kept) in NAMES.items():
            session = await runtime.create(name=given, needs_model=False)
            assert session.status.name == kept, case
            await session.close()
        for case, (given, _) in REFUSED_NAMES.items():
            before = len(await runtime.store.sessions())
            with pytest.raises(InvalidName):
                await runtime.create(name=given, needs_model=False)
            assert len(await runtime.store.sessions()) == before, case
        for given in REFUSED_IDS.values():
            with pytest.raises(InvalidId):
                await runtime.create(session=given, needs_model=False)
        await runtime.close()

    asyncio.run(through_the_library())
    for case, (given, kept) in NAMES.items():
        done = run("rename", "--json", "--", session_id, given)
        assert (done.code, f'"{kept}"' in done.out) == (0, True), (case, done)
    for case, (given, _) in REFUSED_NAMES.items():
        assert run("rename", "--", session_id, given).code == 2, case


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"polcy": "project"}, "Did you mean 'policy'"),
        ({"policy": {"rules": []}}, "'policy'"),
        ({"budget": {"calls": 2}}, "usd=1"),
        ({"toolsets": {"stock.count": len}}, "'toolsets'"),
        ({"toolsets": [len]}, "'toolsets'"),
        ({"dirs": "/srv/notes"}, "'dirs'"),
        ({"approver": "terminal"}, "'approver'"),
        ({"needs_model": "no"}, "'needs_model'"),
        ({"sandbox": 3}, "'sandbox'"),
    ],
)
async def test_an_option_with_another_name_or_type_is_an_error(
    home: Path, options: dict[str, Any], word: str
) -> None:
    runtime = await Runtime.start(home=home, servers=())
    with pytest.raises(TypeError, match=word):
        await runtime.create(**{"needs_model": False, **options})
    assert await runtime.store.sessions() == []
    await runtime.close()


async def test_a_session_with_a_policy_of_the_program_says_that_it_must_be_given_again(home: Path) -> None:
    runtime = await Runtime.start(home=home, servers=())
    policy = FixedPolicy(default="allow")
    session = await runtime.create(policy=policy, needs_model=False)
    assert session.id in repr(session)
    await session.close()
    with pytest.raises(InvalidPolicy, match="the session's policy was 'fixed'") as refused:
        await runtime.resume(session.id, needs_model=False)
    assert "policy=" in str(refused.value.hint)
    await runtime.resume(session.id, policy=policy, needs_model=False)
    await runtime.close()
