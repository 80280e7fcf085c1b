"""The corpus of command lines, judged by the default policy: almost nothing asks, and nothing dangerous runs outside a full sandbox."""

import pytest
from tests.commands.command_lines import CommandLine, command_lines

from holdfast.commands.tools import SHELL_TOOLS
from holdfast.core import Call, CallId, CommandTarget, Location, SandboxTier, Verdict
from holdfast.policy import Request, Resolver, SessionFacts, load_policy

RUN = next(tool for tool in SHELL_TOOLS if tool.name == "shell.run")
POLICY = load_policy("project")


class Workspace:
    """Paths of a workspace that exists only as text."""

    def locate(self, path: str) -> Location:
        return Location(given=path, real="/workspace")


async def verdict(line: CommandLine, tier: SandboxTier | None) -> Verdict:
    call = Call(id=CallId("1.1"), operation="shell.run", arguments={"script": line.command})
    targets = await Resolver().targets(RUN, call.arguments, Workspace())  # type: ignore[arg-type]  # no path is resolved
    assert any(isinstance(target, CommandTarget) for target in targets)
    facts = SessionFacts(tier=tier).for_call(RUN, targets)
    return POLICY.judge(Request(call=call, tool=RUN, targets=targets, facts=facts)).verdict


async def test_at_least_95_of_100_ordinary_command_lines_run_without_a_prompt() -> None:
    ordinary = [line for line in command_lines() if line.kind != "dangerous"]
    allowed = [line for line in ordinary if await verdict(line, "full") == "allow"]
    assert len(allowed) / len(ordinary) >= 0.95


@pytest.mark.parametrize("tier", ["copy", "none", None])
async def test_nothing_dangerous_is_allowed_outside_the_full_sandbox(tier: SandboxTier | None) -> None:
    dangerous = [line for line in command_lines() if line.kind == "dangerous"]
    assert [line.command for line in dangerous if await verdict(line, tier) == "allow"] == []
