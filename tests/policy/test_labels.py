"""Labels in policies: levels of fields, the test `from`, and what the analyses say about them."""

import msgspec
import pytest

from holdfast.core import (
    ArgumentRoles,
    Call,
    CallFacts,
    CallLevels,
    Decision,
    JsonObject,
    Level,
    Tool,
    call_id,
)
from holdfast.core.errors import InvalidPolicy
from holdfast.mcp import suggest_levels
from holdfast.policy import (
    LabelLevels,
    LabelRules,
    LexicalPaths,
    RecordedCall,
    Request,
    RulePolicy,
    annotate,
    backtest,
    combine,
    compare_policies,
    explain,
    lint,
    parse_policy_text,
    targets_of,
)
from holdfast.policy.document import FieldLevels

BILLS = """
policy: bills
labels:
  known: [contacts.find]
  fields: {"bank.*": {own: [payee]}}
tools:
  bank.history: {}
  bank.pay: {to: payee, amount: none}
rules:
  - {name: read, allow: bank.history, planned: any, because: r}
  - {name: pay, allow: bank.pay, from: {payee: own}, arguments: {amount: {at_most: 100}}, because: r}
  - {name: rest, escalate: "*", because: a person decides}
"""


def _policy(text: str = BILLS) -> RulePolicy:
    return RulePolicy(parse_policy_text(text, source="bills.yaml"))


def _request(arguments: JsonObject, levels: CallLevels | None, operation: str = "bank.pay") -> Request:
    tool = _policy().document.tools[operation]
    call = Call(id=call_id(1, 1), operation=operation, arguments=arguments)
    targets = targets_of(tool, arguments, LexicalPaths())
    return Request(call=call, tool=tool, targets=targets, facts=CallFacts(levels=levels))


def _judge(levels: CallLevels | None) -> Decision:
    return _policy().judge(_request({"to": "DE11", "amount": 5}, levels))


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [
        (CallLevels(), "allow"),
        (CallLevels(arguments={"to": "known"}), "escalate"),
        (CallLevels(arguments={"to": "stranger"}), "escalate"),
        (CallLevels(arguments={"amount": "stranger"}), "allow"),
        (CallLevels(author="known"), "escalate"),
        (CallLevels(carries_secret=True), "escalate"),
        (None, "escalate"),
    ],
)
def test_a_rule_applies_if_the_level_is_high_enough(levels: CallLevels | None, verdict: str) -> None:
    assert _judge(levels).verdict == verdict


def test_a_decision_names_the_rule_that_wanted_another_level() -> None:
    levels = CallLevels(arguments={"to": "stranger"}, sources={"to": "body of mail.search (call 1.1)"})
    decision = _judge(levels)
    assert decision.rule == "rest"
    assert decision.reason == (
        "a person decides ('pay' does not apply: to comes from body of mail.search (call 1.1) (stranger), and the rule wants own)"
    )
    lines = "\n".join(explain(_policy(), _request({"to": "DE11", "amount": 5}, levels)).lines())
    assert "to: body of mail.search (call 1.1) (anyone could have written it)" in lines


FIELDS = LabelRules(
    own=("host.now",),
    known=("chat.*",),
    fields=(
        FieldLevels(operations="mail.*", own=("id",), known=("sender", "headers.from")),
        FieldLevels(operations="mail.list", own=("*.id",)),
        FieldLevels(operations="chat.own", own=("me",)),
    ),
)


@pytest.mark.parametrize(
    ("operation", "path", "level"),
    [
        ("host.now", (), "own"), ("host.now", ("a", "b"), "own"), ("host.other", (), "stranger"), ("chat.read", ("text",), "known"),
        ("mail.read", (), "stranger"), ("mail.read", ("id",), "own"), ("mail.read", ("sender",), "known"), ("mail.read", ("sender", "name"), "known"),
        ("mail.read", ("body",), "stranger"), ("mail.read", ("body", "sender"), "stranger"), ("mail.read", ("*",), "stranger"),
        ("mail.read", ("headers",), "stranger"), ("mail.read", ("headers", "from"), "known"), ("mail.read", ("headers", "*"), "stranger"),
        ("mail.list", ("m1", "id"), "own"), ("mail.list", ("*", "id"), "own"), ("mail.list", ("id",), "stranger"),
        ("chat.own", ("me",), "own"), ("chat.own", (), "known"), ("chat.own", ("*",), "known"),
    ],
)  # fmt: skip
def test_a_part_of_a_result_has_the_level_that_the_policy_declares(
    operation: str, path: tuple[str, ...], level: Level
) -> None:
    assert LabelLevels([FIELDS]).level_of(operation, path) == level


def test_a_project_can_lower_a_level_and_never_raise_it() -> None:
    lower = LabelLevels([FIELDS, LabelRules(own=("mail.*",))])
    assert lower.level_of("mail.read", ("body",)) == "stranger"
    assert lower.level_of("host.now") == "stranger"
    both = combine(_policy(), _policy(BILLS.replace("payee: own", "payee: known")))
    assert len(both.labels) == 2
    assert (
        both.judge(_request({"to": "DE11", "amount": 5}, CallLevels(arguments={"to": "known"}))).verdict
        == "escalate"
    )


def test_a_difference_in_levels_is_reported_with_the_calls_that_it_changes() -> None:
    result = compare_policies(_policy(), _policy(BILLS.replace("from: {payee: own}", "from: {payee: known}")))
    assert result.altered == ("pay",)
    assert {(each.operation, str(each.levels.arguments), each.is_looser) for each in result.changed} == {
        ("bank.pay", "{'to': 'known'}", True)
    }


def test_a_backtest_uses_the_levels_on_record() -> None:
    facts = CallFacts(levels=CallLevels(arguments={"to": "known"}))
    allowed = Decision(verdict="allow", rule="all", reason="", facts=facts)
    call = Call(id=call_id(1, 1), operation="bank.pay", arguments={"to": "DE11", "amount": 5})
    tools = _policy().document.tools
    assert backtest(_policy(), [RecordedCall(call, allowed)], tools=tools).changed == 1
    known = msgspec.structs.replace(allowed, facts=CallFacts(levels=CallLevels()))
    assert backtest(_policy(), [RecordedCall(call, known)], tools=tools).changed == 0


def test_lint_says_that_what_a_rule_passes_over_is_denied() -> None:
    without = BILLS.replace('  - {name: rest, escalate: "*", because: a person decides}\n', "")
    assert "no-rest" in {each.code for each in lint(_policy(without))}
    assert "no-rest" not in {each.code for each in lint(_policy())}
    assert "unreachable" not in {each.code for each in lint(_policy())}


def test_a_rule_that_asks_for_levels_needs_labels() -> None:
    with pytest.raises(InvalidPolicy, match="no `labels`"):
        _policy("policy: x\nrules:\n  - {name: pay, allow: bank.pay, from: {payee: own}}\n")


def test_an_annotation_as_plain_data_does_not_switch_a_rule_about_a_payee_off() -> None:
    plain = ArgumentRoles(default=("none",))
    path = ArgumentRoles(default=("read-path",))
    annotated = annotate(Tool(name="bank.pay", roles={"to": plain, "amount": path, "note": plain}), _policy())
    assert annotated.roles == {"to": ArgumentRoles(default=("payee",)), "amount": path, "note": plain}


def test_fields_that_cannot_carry_a_sentence_are_suggested() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "mails": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string", "format": "uuid"},
                        "sent": {"type": "string", "format": "date-time"},
                        "from": {"type": "string", "format": "email"},
                        "state": {"enum": ["read", "new"]},
                        "body": {"type": "string"},
                    },
                },
            },
            "count": {"type": "integer"},
        },
    }
    suggestion = suggest_levels("mail.search", schema)
    assert suggestion is not None
    assert (
        suggestion.line()
        == "mail.search: {own: [mails.id, mails.sent, mails.state, count], known: [mails.from]}"
    )
    assert suggest_levels("mail.read", {"type": "string"}) is None
