"""What every policy promises, shown on each of them."""

from collections.abc import Callable

import pytest

from holdfast.core import ArgumentRoles, Call, JsonObject, Location, PathTarget, Tool, call_id
from holdfast.policy import FixedPolicy, LexicalPaths, Policy, Request, combine, load_policy, targets_of

READ = Tool(
    name="world.read",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    roles={"path": ArgumentRoles(default=("read-path",))},
)
LAUNCH = Tool(name="world.exec", roles={})

MAKERS: dict[str, Callable[[], Policy]] = {
    "fixed": lambda: FixedPolicy(verdicts={"world.read": "allow"}),
    "rules": lambda: load_policy("project"),
    "tiers": lambda: combine(load_policy("project"), load_policy("safe-analysis")),
}


@pytest.fixture(params=MAKERS)
def policy(request: pytest.FixtureRequest) -> Policy:
    return MAKERS[request.param]()


def ask(tool: Tool | None, arguments: JsonObject, operation: str = "world.read") -> Request:
    targets = targets_of(tool, arguments, LexicalPaths()) if tool is not None else ()
    return Request(
        call=Call(id=call_id(1, 1), operation=operation, arguments=arguments), tool=tool, targets=targets
    )


def test_a_call_that_a_rule_allows_is_allowed(policy: Policy) -> None:
    assert policy.judge(ask(READ, {"path": "a.txt"})).verdict == "allow"


def test_a_decision_names_its_rule_its_place_and_its_reason(policy: Policy) -> None:
    for request in (ask(READ, {"path": "a.txt"}), ask(None, {})):
        decision = policy.judge(request)
        assert decision.rule
        assert decision.source
        assert decision.reason


def test_an_unknown_operation_is_denied(policy: Policy) -> None:
    assert policy.judge(ask(None, {"path": "a.txt"})).rule == "structural-unknown-tool"


def test_a_tool_of_another_name_does_not_stand_in_for_an_operation(policy: Policy) -> None:
    assert policy.judge(ask(READ, {"path": "a.txt"}, "world.reed")).verdict == "deny"


def test_a_call_without_a_matching_rule_is_denied(policy: Policy) -> None:
    assert policy.judge(ask(LAUNCH, {}, "world.exec")).verdict == "deny"
    assert not policy.could_allow(LAUNCH)


def test_a_protected_path_is_denied_even_if_reading_is_allowed(policy: Policy) -> None:
    location = Location(given="k", real="/workspace/k", inside="k", protected="/workspace/k")
    target = PathTarget(role="read-path", argument="path", location=location)
    request = Request(call=ask(READ, {"path": "k"}).call, tool=READ, targets=(target,))
    decision = policy.judge(request)
    assert (decision.verdict, decision.rule) == ("deny", "structural-protected-path")


def test_a_path_that_cannot_be_resolved_is_denied(policy: Policy) -> None:
    decision = policy.judge(ask(READ, {"path": "a\0b"}))
    assert (decision.verdict, decision.rule) == ("deny", "invalid-arguments")


def test_a_tool_that_may_pass_is_offered(policy: Policy) -> None:
    assert policy.could_allow(READ)


def test_a_tool_that_one_tier_denies_is_not_offered(policy: Policy) -> None:
    assert not combine(policy, FixedPolicy(default="deny")).could_allow(READ)
    assert not combine(FixedPolicy(default="deny"), policy).could_allow(READ)


def test_judging_twice_gives_the_same_and_equal_policies_have_equal_digests(
    policy: Policy, request: pytest.FixtureRequest
) -> None:
    again = MAKERS[request.node.callspec.params["policy"]]()
    question = ask(READ, {"path": "../outside"})
    assert policy.judge(question) == policy.judge(question) == again.judge(question)
    assert policy.digest == again.digest


def test_policies_that_differ_have_different_digests() -> None:
    assert len({make().digest for make in MAKERS.values()}) == len(MAKERS)
