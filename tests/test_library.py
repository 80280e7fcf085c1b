"""The library as a host program uses it: one configuration with the command line, and no option that is silently ignored."""

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Limits, Runtime, ScriptedModel, Settings
from holdfast.core.errors import InvalidConfig, InvalidInput
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
        assert session.status.policy == Settings().policy


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
