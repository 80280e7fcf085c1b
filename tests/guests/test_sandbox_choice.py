"""The person chooses the engine among those that the policy allows; a project may narrow the choice."""

from pathlib import Path

import pytest

from holdfast import Runtime
from holdfast.core import Ok
from holdfast.core.errors import InvalidInput, InvalidPolicy
from holdfast.core.events import RunStarted
from holdfast.guests import Sandbox
from holdfast.policy import load_policy

ALLOW = "rules:\n  - {name: all, allow: '*'}\n"


def written(folder: Path, sandboxes: str) -> str:
    """A policy that allows these sandboxes."""
    path = folder / "chosen.yaml"
    path.write_text(f"policy: chosen\nsandboxes: {sandboxes}\n{ALLOW}")
    return str(path)


async def engine_of(runtime: Runtime, policy: str, **choices: str) -> str:
    session = await runtime.create(policy=policy, needs_model=False, **choices)  # type: ignore[arg-type]
    assert await session.execute("1") == Ok(value=1)
    [started] = [e.event for e in await runtime.store.read(session.id) if isinstance(e.event, RunStarted)]
    return started.engine


async def test_the_person_chooses_among_the_sandboxes_of_the_policy(runtime: Runtime, tmp_path: Path) -> None:
    policy = written(tmp_path, "[lisp, python]")
    assert await engine_of(runtime, policy) == "python", "the setting, if the policy allows it"
    assert await engine_of(runtime, policy, sandbox="lisp") == "lisp"


async def test_the_policy_chooses_if_the_person_does_not(runtime: Runtime, tmp_path: Path) -> None:
    assert await engine_of(runtime, written(tmp_path, "[lisp, wasi]")) == "lisp"


@pytest.mark.parametrize(
    ("sandboxes", "wanted"),
    [("[python]", "wasi"), ("[python]", "auto"), ("[wasi]", "auto"), ("[]", "python")],
)
async def test_a_sandbox_that_the_policy_excludes_is_refused_and_not_replaced(
    runtime: Runtime, tmp_path: Path, sandboxes: str, wanted: str
) -> None:
    policy = written(tmp_path, sandboxes)
    with pytest.raises(InvalidInput, match="allows code to run in"):
        await runtime.create(policy=policy, sandbox=wanted, needs_model=False)  # type: ignore[arg-type]


async def test_a_project_may_narrow_the_choice_and_not_widen_it(runtime: Runtime, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".holdfast").mkdir(parents=True)
    (project / ".holdfast" / "policy.yaml").write_text(f"policy: project\nsandboxes: [lisp, wasi]\n{ALLOW}")
    policy = written(tmp_path, "[python, lisp]")
    refusals: tuple[Sandbox, ...] = ("python", "wasi")
    for refused in refusals:
        with pytest.raises(InvalidInput, match="in lisp, not in"):
            await runtime.create(workspace=project, policy=policy, sandbox=refused, needs_model=False)
    session = await runtime.create(workspace=project, policy=policy, sandbox="lisp", needs_model=False)
    assert await session.execute("(+ 1 1)") == Ok(value=2)


def test_a_policy_with_an_unknown_sandbox_is_invalid(tmp_path: Path) -> None:
    with pytest.raises(InvalidPolicy, match=r"'docker' is not a sandbox; expected one of python, wasi, lisp"):
        load_policy(written(tmp_path, "[docker]"))
