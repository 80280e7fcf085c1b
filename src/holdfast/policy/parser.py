"""Parses a policy written in YAML. The format is described in docs/guides/write-a-policy.md."""

import re
from collections.abc import Callable, Mapping
from typing import get_args

from holdfast.core import (
    EXECUTED_FILES,
    VERDICTS,
    ArgumentRoles,
    Condition,
    ConditionalRoles,
    Role,
    SandboxTier,
    Tool,
    Verdict,
)
from holdfast.core.errors import InvalidPolicy
from holdfast.policy.document import Example, HostTest, NameTest, PathTest, PolicyDocument, Rule
from holdfast.policy.extend import deny_first, extend
from holdfast.policy.labels.parser import (
    plan_rules,
    read_example_levels,
    read_labels,
    read_level_tests,
    read_planned,
)
from holdfast.policy.lexical_paths import resolve_folder
from holdfast.policy.rule_tests.parser import read_argument_tests, read_commands, read_glob, spend_globs
from holdfast.policy.targets import PATH_ROLES, URL_ROLES
from holdfast.policy.tool_roles import KNOWN_TOOLS
from holdfast.policy.urls import GROUP_PREFIX, canonical_pattern
from holdfast.policy.yaml_nodes import YamlField, YamlNode, read_nodes, refuse_unknown_fields

ROLES: tuple[str, ...] = get_args(Role)
_OPERATION = re.compile(r"\*|\*\.[\w-]+|[\w?-]+(\.[\w.?-]+|\.\*)?", re.ASCII)
POLICY_FIELDS = (
    "policy", "description", "extends", "groups", "operations", "sandboxes", "trusted", "hosts", "labels", "rules", "tools",
)  # fmt: skip
SANDBOXES = ("python", "wasi", "lisp", "system")
TIERS = ("full", "copy")
MAX_WAIT_SECONDS = 366 * 86_400
_GROUP_NAME = re.compile(r"[a-z][a-z0-9-]*")
RULE_FIELDS = (
    "name", *VERDICTS, "because", "instead", "wait_for", "roles", "paths", "within", "inside", "outside", "executes",
    "hosts", "names", "commands", "tier", "from", "planned", "arguments", "examples",
)  # fmt: skip


def _nothing_to_extend(name: str) -> PolicyDocument:
    raise InvalidPolicy(f"there is no policy named {name!r} here")


def parse_policy(
    text: str,
    *,
    source: str,
    values: Mapping[str, str] | None = None,
    extended: Callable[[str], PolicyDocument] = _nothing_to_extend,
) -> PolicyDocument:
    """Parse a policy; `extended` finds the policy that it extends. Raises InvalidPolicy with line and column."""
    return _Parser(values or {}, extended).document(read_nodes(text, source), source)


class _Parser:
    def __init__(self, values: Mapping[str, str], extended: Callable[[str], PolicyDocument]) -> None:
        self._values = values
        self._extended = extended
        self._groups: dict[str, tuple[str, ...]] = {}

    def document(self, node: YamlNode, source: str) -> PolicyDocument:
        fields = node.fields()
        refuse_unknown_fields(fields, POLICY_FIELDS, "a policy")
        if "policy" not in fields:
            node.fail("a policy needs a name; expected `policy: NAME`")
        base = self._base(fields["extends"].node) if "extends" in fields else None
        if base is None and "rules" not in fields:
            node.fail("a policy needs rules; expected `rules:` with a list, or `extends:` with a policy")
        self._groups = dict(base.groups) if base is not None else {}
        for name, field in fields["groups"].node.fields().items() if "groups" in fields else ():
            if not _GROUP_NAME.fullmatch(name):
                field.key_node.fail(f"{name!r} is not a name of a group; expected letters, digits and `-`")
            self._groups[name] = self._operations(field.node)
        lists = fields["operations"].node.fields() if "operations" in fields else {}
        refuse_unknown_fields(lists, ("allow", "deny"), "`operations`")
        rules = fields["rules"].node.each(self._rule) if "rules" in fields else ()
        if "rules" in fields:
            self._check_names(fields["rules"], rules)
        gates = fields["hosts"].node.fields() if "hosts" in fields else {}
        tools = fields["tools"].node.fields() if "tools" in fields else {}
        labels = read_labels(fields["labels"].node) if "labels" in fields else None
        document = PolicyDocument(
            name=fields["policy"].node.name(),
            description=_text(fields, "description"),
            source=source,
            allowed_operations=self._operations(lists["allow"].node, least=0) if "allow" in lists else None,
            denied_operations=self._operations(lists["deny"].node, least=0) if "deny" in lists else (),
            trusted_groups=fields["trusted"].node.each(YamlNode.text) if "trusted" in fields else (),
            host_gates={group: field.node.each(_host) for group, field in gates.items()},
            rules=deny_first(rules),
            labels=labels,
            tools={name: _annotation(field) for name, field in tools.items()},
            sandboxes=fields["sandboxes"].node.each(_sandbox) if "sandboxes" in fields else None,
            groups=self._groups,
        )
        if base is not None:
            document = extend(base, document, given=frozenset(fields) | _listed(lists))
        if document.labels is None:
            asking = [rule.name for rule in document.rules if rule.levels]
            if asking:
                fields["rules"].node.fail(
                    f"the rule {asking[0]!r} has `from`, and the policy has no `labels`"
                )
            return document
        return plan_rules(document)

    def _base(self, node: YamlNode) -> PolicyDocument:
        try:
            return self._extended(node.name())
        except InvalidPolicy as error:
            node.fail(f"cannot extend {node.name()!r}: {error}", hint=error.hint)

    def _operations(self, node: YamlNode, *, least: int = 1) -> tuple[str, ...]:
        """Operation patterns, with the groups among them replaced by what they hold."""
        read = node.at_least_one if least else node.each
        return tuple(dict.fromkeys(operation for each in read(self._operation) for operation in each))

    def _operation(self, node: YamlNode) -> tuple[str, ...]:
        name = node.text()
        if name.startswith(GROUP_PREFIX):
            group = name.removeprefix(GROUP_PREFIX)
            if group not in self._groups:
                known = ", ".join(self._groups) or "none"
                node.fail(f"there is no group {group!r} of operations; the groups are: {known}")
            return self._groups[group]
        if not _OPERATION.fullmatch(name):
            node.fail(
                f"{name!r} is not an operation pattern; expected `group.verb`, `group.*`, `*.verb`, `*` or `group:NAME`"
            )
        return (name,)

    def _rule(self, node: YamlNode) -> Rule:
        fields = node.fields()
        refuse_unknown_fields(fields, RULE_FIELDS, "a rule")
        verdicts: list[Verdict] = [verdict for verdict in VERDICTS if verdict in fields]
        if len(verdicts) != 1:
            node.fail("a rule needs exactly one of deny, escalate, stage and allow, with its operations")
        if "name" not in fields:
            node.fail("a rule needs a name; every decision shows it")
        verdict = verdicts[0]
        roles = fields["roles"].node.at_least_one(_role) if "roles" in fields else ()
        arguments = fields["arguments"].node if "arguments" in fields else None
        takes_none = arguments is not None and arguments.kind == "text"
        if takes_none and arguments is not None:
            arguments.choice(("none",), "test of arguments")
        examples = fields["examples"].node.fields() if "examples" in fields else {}
        refuse_unknown_fields(examples, ("matches", "misses"), "`examples`")
        names = _tests(fields["names"].node) if "names" in fields else {}
        return Rule(
            name=fields["name"].node.name(),
            verdict=verdict,
            operations=self._operations(fields[verdict].node),
            reason=_text(fields, "because"),
            source=node.place,
            instead=_text(fields, "instead"),
            wait_seconds=_wait_seconds(fields, verdict),
            roles=roles,
            paths=self._paths(fields, roles),
            hosts=_hosts(fields, roles),
            names=tuple(
                NameTest(roles=(_role(field.key_node),), names=field.node.at_least_one(YamlNode.name))
                for field in names.values()
            ),
            commands=read_commands(fields["commands"].node) if "commands" in fields else None,
            tiers=fields["tier"].node.at_least_one(_tier) if "tier" in fields else (),
            arguments=() if arguments is None or takes_none else read_argument_tests(arguments),
            takes_no_arguments=takes_none,
            levels=read_level_tests(fields["from"].node, verdict) if "from" in fields else (),
            is_for_any_author=read_planned(fields["planned"].node) if "planned" in fields else False,
            matches=examples["matches"].node.each(_example) if "matches" in examples else (),
            misses=examples["misses"].node.each(_example) if "misses" in examples else (),
        )

    def _paths(self, fields: dict[str, YamlField], roles: tuple[Role, ...]) -> PathTest | None:
        given = [fields[key] for key in ("paths", "within", "inside", "outside", "executes") if key in fields]
        if not given:
            return None
        is_executed = "executes" in fields and fields["executes"].node.boolean()
        # Some name a folder, whose files run; only in rules that restrict does a glob cover them by itself.
        patterns = [each.pattern for each in EXECUTED_FILES] if is_executed else []
        executed = (*patterns, *(f"{pattern}/**" for pattern in patterns))
        spend_globs(given[0].node, executed)
        test = PathTest(
            roles=tuple(role for role in roles if role in PATH_ROLES) or PATH_ROLES,
            globs=(*(fields["paths"].node.at_least_one(read_glob) if "paths" in fields else ()), *executed),
            folders=fields["within"].node.at_least_one(self._folder) if "within" in fields else (),
            inside="inside" in fields and fields["inside"].node.boolean(),
            outside="outside" in fields and fields["outside"].node.boolean(),
        )
        if not (test.globs or test.folders or test.inside or test.outside):
            given[0].node.fail(
                "a rule that matches no path has no effect; expected `true`, or another test of paths"
            )
        return test

    def _folder(self, node: YamlNode) -> str:
        try:
            return resolve_folder(node.text(), self._values)
        except ValueError as error:
            node.fail(str(error))

    def _check_names(self, field: YamlField, rules: tuple[Rule, ...]) -> None:
        seen: set[str] = set()
        for node, rule in zip(field.node.items(), rules, strict=True):
            if rule.name in seen:
                node.fail(f"an earlier rule already has the name {rule.name!r}")
            seen.add(rule.name)


def _listed(lists: dict[str, YamlField]) -> frozenset[str]:
    return frozenset(f"operations.{key}" for key in lists)


def _text(fields: dict[str, YamlField], key: str) -> str:
    return fields[key].node.text() if key in fields else ""


def _wait_seconds(fields: dict[str, YamlField], verdict: Verdict) -> float | None:
    """How long a call waits for an answer, from `wait_for: 600`."""
    if "wait_for" not in fields:
        return None
    node = fields["wait_for"].node
    if verdict != "escalate":
        fields["wait_for"].key_node.fail(
            f"a rule that answers {verdict} does not wait; expected `escalate:` with `wait_for:`"
        )
    seconds = node.json()
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 < seconds <= MAX_WAIT_SECONDS
    ):
        node.fail(f"expected a number of seconds, from 1 to {MAX_WAIT_SECONDS:,}")
    return float(seconds)


def _tests(node: YamlNode) -> dict[str, YamlField]:
    return node.fields() or node.fail("expected at least one value; otherwise leave the field out")


def _sandbox(node: YamlNode) -> str:
    return node.choice(SANDBOXES, "sandbox")


def _role(node: YamlNode) -> Role:
    return node.choice(ROLES, "role")  # type: ignore[return-value]  # choice gives back one of ROLES


def _host(node: YamlNode) -> str:
    pattern = canonical_pattern(node.text())
    if pattern is None:
        node.fail(
            f"{node.text()!r} is not a host pattern; expected `host`, `*.host`, `host:port`, `host/path`, `group:NAME` or `*`"
        )
    return pattern


def _hosts(fields: dict[str, YamlField], roles: tuple[Role, ...]) -> HostTest | None:
    if "hosts" not in fields:
        return None
    return HostTest(
        roles=tuple(role for role in roles if role in URL_ROLES) or URL_ROLES,
        patterns=fields["hosts"].node.at_least_one(_host),
    )


def _tier(node: YamlNode) -> SandboxTier:
    return node.choice(TIERS, "tier")  # type: ignore[return-value]  # choice gives back one of TIERS


def _example(node: YamlNode) -> Example:
    fields = node.fields()
    tier = _tier(fields.pop("tier").node) if "tier" in fields else "full"
    levels = read_example_levels(fields)
    if len(fields) != 1:
        node.fail(
            "an example is one call; expected `operation: {argument: value}`, with `tier:`, `from:` or `author:` beside it"
        )
    ((operation, field),) = fields.items()
    arguments = field.node.json()
    if not isinstance(arguments, dict):
        field.node.fail(f"expected the arguments as a mapping, found {field.node.kind}")
    return Example(
        operation=operation, arguments=arguments, tier=tier, levels=levels, line=node.line, column=node.column
    )


def _annotation(field: YamlField) -> Tool:
    if field.key in KNOWN_TOOLS:
        field.key_node.fail(f"{field.key!r} is built in and already has argument roles")
    roles = {argument: _argument_roles(one.node) for argument, one in field.node.fields().items()}
    return Tool(name=field.key, roles=roles)


def _argument_roles(node: YamlNode) -> ArgumentRoles:
    if node.kind != "a mapping":
        return ArgumentRoles(default=node.each(_role))
    fields = node.fields()
    refuse_unknown_fields(fields, ("default", "when"), "the roles of an argument")
    if "default" not in fields:
        node.fail("expected `default:` with the roles that apply if no condition holds")
    when = fields["when"].node.each(_conditional) if "when" in fields else ()
    return ArgumentRoles(default=fields["default"].node.each(_role), when=when)


def _conditional(node: YamlNode) -> ConditionalRoles:
    fields = node.fields()
    refuse_unknown_fields(fields, ("argument", "equals", "one_of", "is", "roles"), "a condition")
    if "argument" not in fields or "roles" not in fields or len(fields) != 3:
        node.fail("expected `argument:`, `roles:` and one of `equals:`, `one_of:` and `is:`")
    presence = (
        fields["is"].node.choice(("present", "absent", "truthy", "falsy"), "state")
        if "is" in fields
        else None
    )
    condition = Condition(
        argument=fields["argument"].node.text(),
        equals=fields["equals"].node.json() if "equals" in fields else None,
        one_of=fields["one_of"].node.at_least_one(YamlNode.json) if "one_of" in fields else (),
        presence=presence,  # type: ignore[arg-type]  # choice gives back one of the four
    )
    return ConditionalRoles(condition=condition, roles=fields["roles"].node.each(_role))
