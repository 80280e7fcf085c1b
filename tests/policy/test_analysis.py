"""Explaining, linting, comparing and backtesting policies; and what of a list is shown."""

import itertools
import time

import pytest

from holdfast.core import ArgumentRoles, Call, Decision, Json, JsonObject, Tool, call_id
from holdfast.models import ModelToolset, ScriptedModel
from holdfast.policy import (
    KNOWN_TOOLS,
    FixedPolicy,
    LexicalPaths,
    PolicyDocument,
    RecordedCall,
    Request,
    Rule,
    RulePolicy,
    annotate,
    backtest,
    combine,
    compare_policies,
    explain,
    hide_unreadable_paths,
    lint,
    load_policy,
    most_permissive_verdict,
    named_policies,
    run_examples,
    targets_of,
)
from holdfast.policy.document import PathTest
from holdfast.policy.parser import parse_policy
from holdfast.session.commands.git_toolset import GIT_TOOLS
from holdfast.world import WORLD_TOOLS


def policy(rules: str, head: str = "") -> RulePolicy:
    return RulePolicy(parse_policy(f"policy: test\n{head}rules:\n{rules}", source="test.yaml"))


def request(operation: str, arguments: JsonObject) -> Request:
    tool = KNOWN_TOOLS[operation]
    call = Call(id=call_id(1, 1), operation=operation, arguments=arguments)
    return Request(call=call, tool=tool, targets=targets_of(tool, arguments, LexicalPaths()))


def codes(one: RulePolicy) -> list[tuple[str, str]]:
    return [(finding.code, finding.rule) for finding in lint(one) if finding.level == "warning"]


# -- explain


def test_an_explanation_lists_each_claim_and_the_skipped_rules() -> None:
    one = policy(
        "  - {name: a, allow: world.move, paths: ['src/**']}\n  - {name: b, escalate: world.move, roles: [write-path]}"
    )
    report = explain(one, request("world.move", {"source": "src/a", "destination": "lib/a"}))
    assert report.decision.rule == "b"
    assert [(claim.role, claim.decision.rule) for claim in report.claims] == [
        ("delete-path", "a"),
        ("read-path", "a"),
        ("write-path", "b"),
    ]
    assert [(over.rule, over.because) for over in report.claims[-1].skipped_rules] == [
        ("a", "the path does not match its paths")
    ]
    text = "\n".join(report.lines())
    assert "lib/a" in text
    assert "test.yaml:3" in text


def test_an_explanation_names_a_rule_that_matches_only_some_values() -> None:
    head = "tools: {mail.send: {files: read-path, to: email-address}}\n"
    ask = "  - {name: ask, escalate: mail.send, paths: ['*'], names: {email-address: [me]}}\n"
    tool = policy(ask, head).document.tools["mail.send"]
    arguments: JsonObject = {"files": ["a"], "to": ["me", "you"]}
    call = Call(id=call_id(1, 1), operation="mail.send", arguments=arguments)
    given = Request(call=call, tool=tool, targets=targets_of(tool, arguments, LexicalPaths()))
    refused = explain(policy(ask, head), given).claims[0]
    assert refused.decision.rule == "default-deny"
    assert [(over.rule, over.because) for over in refused.skipped_rules] == [
        ("ask", "it matches only part of what the call names")
    ]
    asked = explain(policy(ask + "  - {name: all, allow: mail.send}", head), given).claims[0]
    assert (asked.decision.rule, asked.skipped_rules) == ("ask", ())


def test_an_explanation_of_tiers_includes_each_tier() -> None:
    report = explain(
        combine(load_policy("project"), FixedPolicy(default="deny")), request("world.read", {"path": "a"})
    )
    assert [tier.decision.verdict for tier in report.tiers] == ["allow", "deny"]
    assert report.decision.verdict == "deny"


def test_a_structural_refusal_is_explained_without_claims() -> None:
    report = explain(load_policy("project"), request("world.read", {"path": 42}))
    assert report.decision.rule == "invalid-arguments"
    assert report.claims == ()


# -- lint


@pytest.mark.parametrize("name", named_policies())
def test_the_named_policies_leave_nothing_to_say(name: str) -> None:
    assert lint(load_policy(name)) == ()


@pytest.mark.parametrize(
    "rules",
    [
        "  - {name: a, allow: '*'}\n  - {name: b, escalate: world.read}",
        "  - {name: a, allow: 'world.*', inside: true}\n  - {name: b, escalate: world.read, paths: ['src/**']}",
        "  - {name: a, allow: world.read, paths: [x, y]}\n  - {name: b, stage: world.read, paths: [x]}",
        "  - {name: b, allow: world.read, paths: [x]}\n  - {name: a, deny: 'world.*'}",
        "  - {name: a, allow: net.fetch, hosts: [a.example, b.example]}\n  - {name: b, escalate: net.fetch, hosts: [a.example]}",
    ],
)
def test_a_rule_after_a_wider_one_is_unreachable(rules: str) -> None:
    assert ("unreachable", "b") in codes(policy(rules))


@pytest.mark.parametrize(
    "rules",
    [
        "  - {name: a, allow: world.read}\n  - {name: b, escalate: 'world.*'}",
        "  - {name: a, allow: world.read, paths: [x]}\n  - {name: b, escalate: world.read, paths: [x]}",
        "  - {name: a, allow: llm.complete, arguments: {max_tokens: {at_most: 5}}}\n  - {name: b, escalate: llm.complete}",
        "  - {name: a, allow: 'world.*', roles: [read-path]}\n  - {name: b, stage: 'world.*', roles: [write-path]}",
        "  - {name: a, allow: world.read, inside: true}\n  - {name: b, escalate: world.read, outside: true}",
        "  - {name: a, allow: world.read, inside: true}\n  - {name: b, escalate: world.read, within: [/data]}",
        "  - {name: a, allow: m.x, roles: [fetch-url], paths: [x]}\n  - {name: b, stage: m.x, roles: [fetch-url], paths: [x]}",
    ],
)
def test_a_rule_that_can_still_decide_is_not_called_unreachable(rules: str) -> None:
    assert ("unreachable", "b") not in codes(policy(rules))


def test_a_deny_after_an_escalation_still_decides_on_the_folder_above() -> None:
    paths = PathTest(roles=("delete-path",), globs=("src/keys",))
    ask = Rule(name="a", verdict="escalate", operations=("world.delete",), paths=paths)
    deny = Rule(name="b", verdict="deny", operations=("world.delete",), paths=paths)
    one = RulePolicy(PolicyDocument(name="as a compiled policy has it", rules=(ask, deny)))
    assert one.judge(request("world.delete", {"path": "src"})).rule == "b"
    assert ("unreachable", "b") not in codes(one)


def test_a_rule_that_the_lists_refuse_is_unreachable() -> None:
    one = policy("  - {name: b, allow: shell.run}", "operations: {allow: [world.read]}\n")
    assert ("unreachable", "b") in codes(one)


def test_a_rule_that_lets_everything_through_is_reported() -> None:
    assert codes(policy("  - {name: a, allow: '*'}")) == [("too-open", "a")]
    assert codes(policy("  - {name: a, allow: world.read, inside: true, outside: true}")) == [
        ("too-open", "a")
    ]
    assert codes(policy("  - {name: a, allow: world.read, within: [/]}")) == [("too-open", "a")]


def test_trusting_a_built_in_group_is_reported() -> None:
    assert codes(policy("  []", "trusted: [memory, world]\n")) == [("too-open", "trusted")]


def test_slips_of_the_pen_are_reported() -> None:
    assert codes(policy("  - {name: a, deny: world.raed}")) == [("unknown-operation", "a")]
    assert codes(policy("  - {name: a, stage: fs.write}")) == [("cannot-stage", "a")]


def test_rules_without_examples_and_reason_are_noted() -> None:
    notes = [finding.code for finding in lint(policy("  - {name: a, allow: world.read, paths: [a]}"))]
    assert notes == ["no-example", "no-example", "no-reason"]


# -- examples, compare, backtest


def test_examples_are_reported_one_by_one() -> None:
    results = run_examples(load_policy("project"))
    assert len(results) > 15
    assert all(result.is_met for result in results)


def test_two_policies_are_compared_by_rules_and_by_decisions() -> None:
    report = compare_policies(load_policy("safe-analysis"), load_policy("safe-edit"))
    assert report.added == ("propose-edits",)
    assert report.removed == ()
    verdicts = {(one.operation, one.before.verdict, one.after.verdict) for one in report.changed}
    assert ("world.write", "deny", "stage") in verdicts
    assert all(one.is_looser for one in report.changed)
    assert compare_policies(load_policy("project"), load_policy("project")).changed == ()


def history(count: int) -> list[RecordedCall]:
    past = Decision(verdict="allow", rule="r", reason="")
    shapes: list[tuple[str, JsonObject]] = [
        ("world.read", {"path": "src/deep/down/a.py"}),
        ("world.write", {"path": "src/a.py", "content": "x"}),
        ("net.fetch", {"url": "https://example.com/"}),
        ("world.list", {}),
        ("gone.tool", {"x": 1}),
    ]
    return [
        RecordedCall(Call(id=call_id(1, n), operation=operation, arguments=arguments), past, "s")
        for n, (operation, arguments) in zip(range(count), itertools.cycle(shapes), strict=False)
    ]


def test_a_backtest_counts_changed_decisions() -> None:
    report = backtest(load_policy("project"), history(500))
    assert (report.calls, report.changed, report.looser) == (500, 300, 0)
    assert {(one.operation, one.after, one.count) for one in report.counts} == {
        ("world.write", "stage", 100),
        ("net.fetch", "escalate", 100),
        ("gone.tool", "deny", 100),
    }
    assert len(report.samples) == 50


@pytest.mark.soak
def test_a_hundred_thousand_calls_are_judged_in_under_five_seconds() -> None:
    calls = history(100_000)
    started = time.process_time()
    backtest(load_policy("project"), calls)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("name", "operation", "verdict"),
    [
        ("safe-analysis", "world.read", "allow"),
        ("safe-analysis", "world.write", "deny"),
        ("safe-edit", "world.write", "stage"),
        ("safe-edit", "world.delete", "deny"),
        ("project", "world.move", "stage"),
        ("project", "net.fetch", "escalate"),
        ("project", "shell.run", "allow"),
        ("safe-edit", "shell.run", "deny"),
        ("ask-always", "world.list", "escalate"),
    ],
)
def test_how_far_a_tool_can_get_is_known_before_it_tries(name: str, operation: str, verdict: str) -> None:
    assert most_permissive_verdict(load_policy(name), KNOWN_TOOLS[operation]) == verdict


def test_the_strictest_tier_limits_the_most_permissive_verdict() -> None:
    both = combine(load_policy("safe-edit"), load_policy("safe-analysis"))
    assert most_permissive_verdict(both, KNOWN_TOOLS["world.write"]) == "deny"
    assert most_permissive_verdict(FixedPolicy(default="stage"), KNOWN_TOOLS["world.write"]) == "stage"


# -- what comes with Holdfast


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            "  - {name: r, allow: 'shell.*'}",
            "  - {name: r, allow: 'shell.*', tier: full}",
            ("shell.run", {"script": "make"}, "copy"),
        ),
        (
            "  - {name: r, allow: shell.run, commands: [tox]}",
            "  - {name: r, allow: shell.run, commands: [[tox, -e]]}",
            ("shell.run", {"script": "tox"}, "full"),
        ),
        (
            "  - {name: r, allow: net.connect, hosts: [a.example, b.example]}",
            "  - {name: r, allow: net.connect, hosts: [b.example]}",
            ("net.connect", {"host": "a.example"}, "full"),
        ),
        (
            "  - {name: r, allow: llm.complete, arguments: {max_tokens: {at_most: 10}}}",
            "  - {name: r, allow: llm.complete, arguments: {max_tokens: {at_most: 20}}}",
            ("llm.complete", {"prompt": "x", "max_tokens": 20.0}, "full"),
        ),
    ],
    ids=["tier", "commands", "hosts", "arguments"],
)
def test_diff_finds_a_change_of_each_kind_of_test(
    before: str, after: str, expected: tuple[str, JsonObject, str]
) -> None:
    changed = compare_policies(policy(before), policy(after)).changed
    assert expected in [(each.operation, each.arguments, each.tier) for each in changed]


def test_g27_what_may_not_be_read_is_not_listed() -> None:
    found: Json = ["a.ts", ".env", "src/.hidden/x", "src/b.ts"]
    listed = [
        hide_unreadable_paths("world.list", found, load_policy(name), LexicalPaths())
        for name in ("safe-analysis", "ask-always")
    ]
    assert listed == [["a.ts", "src/b.ts"], found]


def test_known_tools_agree_with_the_toolsets() -> None:
    offered = (*WORLD_TOOLS, *ModelToolset(ScriptedModel([])).tools(), *GIT_TOOLS)
    for tool in offered:
        known = KNOWN_TOOLS[tool.name]
        assert known.roles is not None
        assert tool.roles is not None
        assert {name: set(roles.default) for name, roles in known.roles.items()} == {
            name: set(roles.default) for name, roles in tool.roles.items()
        }, tool.name


def test_a_policy_annotates_only_tools_without_roles() -> None:
    data = {"path": ArgumentRoles(default=("none",))}
    one = policy("  []", "tools: {fs.read: {path: read-path}}\n")
    one.document.tools["world.write"] = Tool(name="world.write", roles=data)
    silent = annotate(Tool(name="fs.read"), one)
    assert silent.roles == {"path": ArgumentRoles(default=("read-path",))}
    assert annotate(Tool(name="fs.read"), combine(FixedPolicy(), one)).roles == silent.roles
    assert annotate(KNOWN_TOOLS["world.write"], one) == KNOWN_TOOLS["world.write"]
    assert annotate(Tool(name="fs.other"), one).roles is None


def test_a_lower_tier_makes_no_tool_known_that_a_higher_one_denies_as_unknown() -> None:
    above = policy("  - {name: all, allow: 'fs.*'}")
    below = policy("  - {name: all, allow: 'fs.*'}", "tools: {fs.wipe: {path: none}}\n")
    both = combine(above, below)
    tool = annotate(Tool(name="fs.wipe"), both)
    call = Call(id=call_id(1, 1), operation="fs.wipe", arguments={"path": "/"})
    assert both.judge(Request(call=call, tool=tool)).rule == "missing-annotation"
    assert annotate(Tool(name="fs.wipe"), combine(below, above)).roles is not None
