"""The examples of the rules. The whole policy judges each of them when it is loaded."""

import msgspec

from holdfast.core import Call, Decision, Tool, Value, call_id
from holdfast.core.errors import InvalidPolicy
from holdfast.policy.contract import Request
from holdfast.policy.document import Example
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.facts import SessionFacts
from holdfast.policy.lexical_paths import LexicalPaths
from holdfast.policy.targets import targets_of
from holdfast.policy.tool_roles import BUILT_IN_GROUPS, KNOWN_TOOLS

EXAMPLE_HOST_GROUPS: dict[str, tuple[str, ...]] = {"package-registries": ("packages.example",)}
"""The groups as examples know them. At the gate, a group has the hosts that this machine is configured to use."""
_HINTS = {"structural-unknown-tool": "declare the argument roles of this tool under `tools:`"}


class ExampleResult(Value):
    """The decision on one example."""

    rule: str
    example: Example
    is_match_expected: bool
    decision: Decision

    @property
    def is_judged(self) -> bool:
        """Whether the tool of the example is known. The tools of an MCP server are not before it is added."""
        is_unknown = self.decision.rule == "structural-unknown-tool"
        return not is_unknown or self.example.operation.partition(".")[0] in BUILT_IN_GROUPS

    @property
    def is_met(self) -> bool:
        """Whether the rule decides a call that it must match, or does not decide one that it must miss."""
        return (self.decision.rule == self.rule) == self.is_match_expected


def run_examples(policy: RulePolicy) -> tuple[ExampleResult, ...]:
    """Judge every example of a policy."""
    return tuple(
        ExampleResult(
            rule=rule.name,
            example=example,
            is_match_expected=expected,
            decision=judge_example(policy, example),
        )
        for rule in policy.document.rules
        if not rule.is_inherited
        for expected, examples in ((True, rule.matches), (False, rule.misses))
        for example in examples
    )


def check_examples(policy: RulePolicy) -> None:
    """Raise InvalidPolicy at the first example that fails. Examples about tools that are not known are left out."""
    for result in run_examples(policy):
        if result.is_judged and not result.is_met:
            raise InvalidPolicy(
                f"the rule {result.rule!r} {'does not match' if result.is_match_expected else 'matches'} this example: "
                f"{result.decision.rule!r} decides {result.decision.verdict} ({result.decision.reason})",
                source=policy.document.source,
                line=result.example.line,
                column=result.example.column,
                hint=_HINTS.get(result.decision.rule, "fix the rule or the example"),
            )


def judge_example(policy: RulePolicy, example: Example) -> Decision:
    """The decision of a policy on an example."""
    return policy.judge(request_for_example(policy, example))


def request_for_example(policy: RulePolicy, example: Example) -> Request:
    """The call of an example, with paths resolved by their text and the facts that examples have."""
    tool = tool_for(policy, example.operation)
    call = Call(id=call_id(1, 1), operation=example.operation, arguments=example.arguments)
    if tool is None:
        return Request(call=call, tool=None)
    targets = targets_of(tool, example.arguments, LexicalPaths())
    facts = SessionFacts(tier=example.tier, host_groups=lambda: EXAMPLE_HOST_GROUPS).for_call(tool, targets)
    if policy.labels:
        facts = msgspec.structs.replace(facts, levels=example.levels)
    return Request(call=call, tool=tool, targets=targets, facts=facts)


def tool_for(policy: RulePolicy, operation: str) -> Tool | None:
    """The built-in tool of this name, else the one that the policy annotates."""
    return KNOWN_TOOLS.get(operation) or policy.document.tools.get(operation)
