"""The library as a host program uses it: one configuration with the command line, and no option that is silently ignored."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import Limits, Runtime, ScriptedModel, ServerSpec, Settings
from holdfast.core.errors import InvalidConfig, InvalidInput, SessionNotReady
from holdfast.core.messages import Usage
from holdfast.guests import ScriptedEngine

CONFIG = """\
policy = "ask-always"
sandbox = "lisp"

[budget]
tokens = 1234
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


async def test_f21_the_library_reads_config_toml_as_the_command_line_does(home: Path) -> None:
    (home / "config.toml").write_text(CONFIG)
    async with holdfast.open(ScriptedModel([]), home=home) as session:
        assert session.status.policy == "ask-always"
        assert session.budget.limits.tokens == 1234
        outcome = await session.execute("(+ 1 2)", language="lisp")
        assert isinstance(outcome, holdfast.Ok)
        assert outcome.value == 3


async def test_f21_an_explicit_argument_wins_over_the_file(home: Path) -> None:
    (home / "config.toml").write_text(CONFIG)
    async with holdfast.open(
        ScriptedModel([]), home=home, policy="project", sandbox="python", budget="tokens=5k,usd=1"
    ) as session:
        assert session.status.policy == "project"
        assert session.budget.limits == Limits(tokens=5000, cost_usd=session.budget.limits.cost_usd)
        assert await session.execute("1 + 2") == holdfast.Ok(value=3)


async def test_f21_settings_of_your_own_ignore_the_file(home: Path) -> None:
    (home / "config.toml").write_text("polcy = 1")
    (home / "mcp-servers.json").write_text("broken")
    async with holdfast.open(ScriptedModel([]), home=home, settings=Settings(), servers=()) as session:
        assert session.status.policy == "scratch"


@pytest.mark.parametrize(("file", "text"), [("config.toml", "polcy = 1"), ("mcp-servers.json", "{")])
async def test_f21_a_mistake_in_a_file_is_an_error_and_creates_nothing(
    home: Path, file: str, text: str
) -> None:
    (home / file).write_text(text)
    with pytest.raises(InvalidConfig, match=file):
        await Runtime.start(home=home)
    assert [path.name for path in home.iterdir()] == [file]


async def test_f21_a_server_in_the_file_is_started(home: Path) -> None:
    missing = {"mcpServers": {"shelf": {"command": str(home / "no-such-program")}}}
    (home / "mcp-servers.json").write_text(json.dumps(missing))
    async with holdfast.open(ScriptedModel([]), home=home) as session:
        assert [note.code for note in session.diagnostics()] == ["server-failed"]


async def test_f21_a_project_narrows_the_budget(home: Path, tmp_path: Path) -> None:
    (home / "config.toml").write_text("[budget]\ntokens = 9000\n")
    (tmp_path / "project" / ".holdfast").mkdir(parents=True)
    (tmp_path / "project" / ".holdfast" / "config.toml").write_text("[budget]\ntokens = 50\n")
    async with holdfast.open(ScriptedModel([]), home=home, workspace=tmp_path / "project") as session:
        assert session.budget.limits.tokens == 50


@pytest.mark.parametrize("method", ["create", "resume", "fork", "restore", "open"])
async def test_f21_an_unknown_keyword_is_an_error_and_creates_nothing(home: Path, method: str) -> None:
    runtime = await Runtime.start(home=home)
    kept = await runtime.create(needs_model=False)
    await kept.close()
    await runtime.snapshot(kept.id, home / "kept.snapshot")
    unknown: dict[str, Any] = {"polcy": "read-only", "needs_model": False}
    attempts: dict[str, Callable[[], Awaitable[object]]] = {
        "create": lambda: runtime.create(**unknown),
        "resume": lambda: runtime.resume(kept.id, **unknown),
        "fork": lambda: runtime.fork(kept.id, **unknown),
        "restore": lambda: runtime.restore(home / "kept.snapshot", **unknown),
        "open": lambda: holdfast.open(home=home, **unknown).__aenter__(),
    }
    with pytest.raises(TypeError, match="polcy"):
        await attempts[method]()
    assert [each.id for each in await runtime.store.sessions()] == [kept.id]
    await runtime.close()


async def test_f21_an_unknown_sandbox_is_an_error_and_creates_nothing(home: Path) -> None:
    runtime = await Runtime.start(home=home)
    with pytest.raises(InvalidInput, match="lsip"):
        await runtime.create(sandbox="lsip", needs_model=False)  # type: ignore[arg-type]
    assert await runtime.store.sessions() == []
    await runtime.close()


async def test_f21_a_policy_that_names_sandboxes_refuses_an_engine_of_your_own(home: Path) -> None:
    runtime = await Runtime.start(home=home)
    policy = home / "policies" / "python-only.yaml"
    policy.parent.mkdir(exist_ok=True)
    policy.write_text("policy: python-only\nsandboxes: [python]\nrules: []\n")
    with pytest.raises(InvalidInput, match="allows code to run in python"):
        await runtime.create(sandbox=ScriptedEngine(), policy=str(policy), needs_model=False)
    await runtime.close()


def test_f21_dir_lists_the_public_names_and_all_of_them_load() -> None:
    assert set(holdfast.__all__) <= set(dir(holdfast))
    for name in holdfast.__all__:
        assert getattr(holdfast, name) is not None
    for needed in ("Ok", "Needs", "Response", "Limits", "Settings", "errors", "Tool", "Engine", "Approver"):
        assert needed in holdfast.__all__


def test_f21_the_type_stub_declares_the_same_names() -> None:
    stub = Path(holdfast.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    declared = {line.rpartition(" as ")[2] for line in stub.splitlines() if " as " in line}
    assert declared | {"__version__"} == set(holdfast.__all__)


def test_f21_importing_the_package_loads_none_of_it() -> None:
    program = "import sys, holdfast; print([name for name in sys.modules if name.startswith('holdfast.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- what a host asks of a session


async def test_f22_a_host_loop_ends_when_the_budget_is_spent(home: Path) -> None:
    async with holdfast.open(needs_model=False, home=home, budget="iterations=2") as session:
        turns = 0
        while session.can_continue():
            turns += 1
            await session.execute("1")
        assert turns == 2
        assert session.budget.remaining_all()["iterations"] == 0
        await session.raise_budget(Limits(iterations=3))
        assert session.can_continue()


async def test_f22_a_turn_that_needs_more_than_is_left_ends_the_loop_until_the_limit_is_raised(
    home: Path,
) -> None:
    async with holdfast.open(ScriptedModel(["Hello."] * 3), home=home, budget="tokens=5") as session:
        assert session.can_continue()
        outcome = await session.send("hi")
        assert isinstance(outcome, holdfast.Nonconverged)
        assert session.budget.remaining_all()["tokens"] == 5
        assert not session.can_continue()
        await session.raise_budget(Limits(tokens=100_000))
        assert session.can_continue()
        assert await session.advance() == holdfast.Ok(value="Hello.")


async def test_f22_the_limit_of_one_turn_does_not_end_the_loop(home: Path) -> None:
    settings = Settings(turn_budget=Limits(steps=0))
    async with holdfast.open(ScriptedModel(["Hello."]), home=home, settings=settings) as session:
        assert isinstance(await session.send("hi"), holdfast.Nonconverged)
        assert session.can_continue()


@pytest.mark.parametrize("end", ["pause", "complete", "abort", "close"])
async def test_f22_a_session_that_takes_no_turn_cannot_continue(home: Path, end: str) -> None:
    async with holdfast.open(needs_model=False, home=home) as session:
        await getattr(session, end)()
        assert not session.can_continue()


async def test_f22_the_last_turn_reports_number_tokens_budget_and_proposals(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    model = ScriptedModel(
        [
            holdfast.use("execute_code", {"code": "open('a.txt', 'w').write('x')"}),
            msgspec.structs.replace(holdfast.say("Done."), usage=Usage(input_tokens=70, output_tokens=7)),
        ]
    )
    async with holdfast.open(
        model, home=home, workspace=tmp_path / "work", budget="tokens=50k", description="a test"
    ) as session:
        assert session.last_turn() is None
        outcome = await session.send("hi")
        result = session.last_turn()
        assert result is not None
        assert (result.outcome, result.turn_number) == (outcome, 1)
        assert [each.path for each in result.proposals] == ["a.txt"]
        assert result.prompt_tokens >= 70
        assert result.completion_tokens >= 7
        assert result.prompt_tokens + result.completion_tokens == result.spent.tokens
        assert result.budget_remaining["tokens"] == 50_000 - result.spent.tokens
        assert result.budget_remaining["usd"] is None
        assert [(each.kind, each.code) for each in session.diagnostics()] == [
            ("call", "world.write"),
            ("text", ""),
        ]
        assert session.audit_stats().operation_counts == {"world.write": 1}
        assert session.description == "a test"


@pytest.mark.parametrize("mode", ["code", "tools"])
@pytest.mark.parametrize("is_in_file", [True, False])
async def test_f22_instructions_of_your_own_reach_the_model(home: Path, mode: str, is_in_file: bool) -> None:
    said: list[str] = []

    def reply(prompt: holdfast.Prompt) -> holdfast.Reply:
        said.append(prompt.system)
        return holdfast.say("Oui.")

    words = "Answer in French."
    in_file = f'instructions = "{words}"\n' if is_in_file else ""
    (home / "config.toml").write_text(f'acts_with = "{mode}"\n{in_file}')
    given = None if is_in_file else words
    async with holdfast.open(ScriptedModel([reply]), home=home, instructions=given) as session:
        await session.send("hi")
    assert said[0].rstrip().endswith(words)


async def test_f22_a_runtime_knows_its_sessions_and_keeps_to_their_number(home: Path) -> None:
    runtime = await Runtime.start(home=home, max_sessions=1)
    session = await runtime.create(needs_model=False)
    assert runtime.get(session.id) is session
    assert runtime.get("another") is None
    for attempt in (runtime.create, lambda **options: runtime.fork(session.id, **options)):
        with pytest.raises(SessionNotReady, match="at most 1 session"):
            await attempt(needs_model=False)
    assert [each.id for each in await runtime.store.sessions()] == [session.id]
    await session.close()
    assert runtime.get(session.id) is None
    await (await runtime.create(needs_model=False)).close()
    await runtime.close()


@pytest.mark.parametrize("is_new", [True, False])
async def test_f26_a_session_whose_opening_is_cancelled_is_not_left_open(home: Path, is_new: bool) -> None:
    silent = ServerSpec(name="silent", command=sys.executable, args=("-c", "input()"))
    async with holdfast.open(home=home, needs_model=False, name="there"):
        pass
    runtime = await Runtime.start(home=home, servers=[silent])
    is_open = asyncio.Event()
    runtime.live_sessions.on_open(lambda _: is_open.set())
    opening = asyncio.create_task(
        runtime.create(needs_model=False) if is_new else runtime.resume("there", needs_model=False)
    )
    await is_open.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert runtime.live_sessions.all() == ()
    assert [each.name for each in await runtime.store.sessions()] == ["there"]
    await runtime.close()


async def test_a_tool_may_be_a_coroutine_function_and_keeps_few_of_its_calls(home: Path) -> None:
    async def double(arguments: dict[str, Any]) -> int:
        await asyncio.sleep(0)
        return 2 * int(arguments["n"])

    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = holdfast.Tool(name="numbers.double", parameters=schema, roles={})
    tools = holdfast.FunctionToolset({tool.name: (tool, double)})
    policy = holdfast.FixedPolicy(default="deny", verdicts={tool.name: "allow"})
    async with holdfast.open(home=home, toolsets=[tools], policy=policy, needs_model=False) as session:
        assert await session.execute("numbers.double(n=21)") == holdfast.Ok(value=42)
    call = tools.performed[0]
    for _ in range(1_500):
        await tools.perform(call, is_staged=False)
    assert len(tools.performed) == 1_000


VALUES: list[holdfast.Json] = [
    None,
    True,
    -12,
    2.5,
    1e300,
    "",
    'a "quoted" \\ text) (world/delete "x")\n\t\r\0;',
    "ünïcode 日本",
    [],
    {},
    [1, [2, ["3"]]],
    {"a": {"b c": [None, False]}, "": 1, ":k": "v"},
]


async def test_f22_python_data_becomes_the_same_data_in_lisp(home: Path) -> None:
    async with holdfast.open(needs_model=False, home=home, sandbox="lisp") as session:
        for value in VALUES:
            outcome = await session.execute(holdfast.to_lisp(value), language="lisp")
            assert isinstance(outcome, holdfast.Ok), outcome
            assert outcome.value == value
        assert session.audit() == []


@pytest.mark.parametrize("value", [b"bytes", float("nan"), float("inf"), {1: 2}, object(), {"a": {3}}])
def test_f22_data_that_lisp_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        holdfast.to_lisp(value)


# -- the reference


def test_every_public_name_is_in_the_python_reference() -> None:
    root = Path(__file__).parent.parent
    page = (root / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    headings = {
        line.lstrip("# ").removeprefix("holdfast.") for line in page.splitlines() if line[:3] == "###"
    }
    assert {name for name in holdfast.__all__ if not name.startswith("__")} <= headings
