"""Parses what a policy says about labels: `labels`, `from`, `planned`, and the origins in examples."""

from typing import get_args

import msgspec

from holdfast.core import LEVELS, CallLevels, Level, Role, Verdict, reaches, restricts
from holdfast.policy.document import FieldLevels, LabelRules, LevelTest, PolicyDocument
from holdfast.policy.yaml_nodes import YamlField, YamlNode, refuse_unknown_fields

LABEL_FIELDS = ("own", "known", "fields", "secret", "workspace", "choices", "show")


def read_labels(node: YamlNode) -> LabelRules:
    """`labels`: the levels of results, by operation and by field."""
    fields = node.fields()
    refuse_unknown_fields(fields, LABEL_FIELDS, "`labels`")
    declared = fields["fields"].node.fields() if "fields" in fields else {}
    return LabelRules(
        own=_operations(fields, "own"),
        known=_operations(fields, "known"),
        fields=tuple(_field_levels(operations, field) for operations, field in declared.items()),
        secret=_operations(fields, "secret"),
        workspace=_level(fields["workspace"].node) if "workspace" in fields else "own",
        shows=_level(fields["show"].node) if "show" in fields else "stranger",
        counts_choices="choices" in fields and fields["choices"].node.boolean(),
    )


def read_level_tests(node: YamlNode, verdict: Verdict) -> tuple[LevelTest, ...]:
    """`from`: the level that the arguments of a role need."""
    if restricts(verdict):
        node.fail(
            "only a rule that allows or stages can ask for a level; put one that asks or denies after it"
        )
    wanted = node.fields() or node.fail("expected at least one value; otherwise leave the field out")
    return tuple(LevelTest(role=_role(each.key_node), level=_level(each.node)) for each in wanted.values())


def read_planned(node: YamlNode) -> bool:
    """`planned`: whether the rule applies no matter who wrote the call."""
    if node.kind == "true or false":
        return not node.boolean() and node.fail("expected true or any", hint="planned: any")
    return node.choice(("true", "any"), "value of `planned`") == "any"


def read_example_levels(fields: dict[str, YamlField]) -> CallLevels:
    """The origins in an example, which are taken out of its fields: `from` by argument, and `author`."""
    author = _level(fields.pop("author").node) if "author" in fields else "own"
    given = fields.pop("from").node.fields() if "from" in fields else {}
    return CallLevels(author=author, arguments={name: _level(field.node) for name, field in given.items()})


def plan_rules(document: PolicyDocument) -> PolicyDocument:
    """The policy with labels: what its rules allow, they allow only to what was planned before a stranger's words were shown."""
    rules = [
        msgspec.structs.replace(
            rule, needs_own_author=not restricts(rule.verdict) and not rule.is_for_any_author
        )
        for rule in document.rules
    ]
    assert document.labels is not None, "only a policy with labels is planned"
    asked: dict[Role, LevelTest] = {}
    for test in (test for rule in rules for test in rule.levels):
        if test.role not in asked or reaches(test.level, asked[test.role].level):
            asked[test.role] = test
    labels = msgspec.structs.replace(document.labels, asked=tuple(asked.values()))
    return msgspec.structs.replace(document, rules=tuple(rules), labels=labels)


def _field_levels(operations: str, field: YamlField) -> FieldLevels:
    fields = field.node.fields()
    refuse_unknown_fields(fields, ("own", "known"), "the fields of a result")
    return FieldLevels(
        operations=operations,
        own=fields["own"].node.at_least_one(YamlNode.name) if "own" in fields else (),
        known=fields["known"].node.at_least_one(YamlNode.name) if "known" in fields else (),
    )


def _operations(fields: dict[str, YamlField], key: str) -> tuple[str, ...]:
    return fields[key].node.at_least_one(YamlNode.name) if key in fields else ()


def _level(node: YamlNode) -> Level:
    return node.choice(LEVELS, "level")  # type: ignore[return-value]  # choice gives back one of LEVELS


def _role(node: YamlNode) -> Role:
    return node.choice(get_args(Role), "role")  # type: ignore[return-value]
