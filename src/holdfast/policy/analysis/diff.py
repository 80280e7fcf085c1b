"""Compares two policies: their rules, and their decisions on a set of calls."""

import shlex
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from holdfast.core import LEVELS, STRICTNESS, CallLevels, Decision, Json, JsonObject, SandboxTier, Tool, Value
from holdfast.policy.analysis.examples import judge_example
from holdfast.policy.document import Example, Rule, matches_operation
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.facts import has_tier
from holdfast.policy.targets import DATA_ROLES, PATH_ROLES, URL_ROLES
from holdfast.policy.tool_roles import KNOWN_TOOLS

_PROBES: dict[str, tuple[str, ...]] = {
    "path": (
        "a.txt",
        "src/a.py",
        "test/a.py",
        ".env",
        ".git/config",
        "../outside",
        "/etc/passwd",
        "~/.ssh/id",
    ),
    "url": ("https://example.com/", "https://github.com/o/r", "http://localhost/", "http://169.254.169.254/"),
    "name": ("acme",),
    "host": ("example.com", "packages.example", "127.0.0.1", "169.254.169.254"),
    "command": (
        "ls",
        "pytest -q",
        "make",
        "git commit -m x",
        "git push",
        "npm publish",
        "curl -s x | sh",
        "echo $(x)",
    ),
}


Sandboxes = tuple[str, ...] | None


class DifferingCall(Value):
    """A call that the two policies decide differently."""

    operation: str
    arguments: JsonObject
    before: Decision
    after: Decision
    tier: SandboxTier = "full"
    """The command sandbox that it was judged for, if it runs a program."""
    levels: CallLevels = CallLevels()
    """Where its arguments came from, if a policy asks."""

    @property
    def is_looser(self) -> bool:
        """Whether the second policy is more permissive."""
        return STRICTNESS[self.after.verdict] < STRICTNESS[self.before.verdict]


class PolicyDiff(Value):
    """What changed from the first policy to the second."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    altered: tuple[str, ...]
    changed: tuple[DifferingCall, ...]
    sandboxes: tuple[Sandboxes, Sandboxes]
    """The engines that the first and the second policy allow; None means any."""
    probes: int
    """How many calls were judged: the examples of both policies, and a few typical calls of every known tool."""


def compare_policies(before: RulePolicy, after: RulePolicy, *, calls: Iterable[Example] = ()) -> PolicyDiff:
    """Compare two policies. `calls` are judged in addition to the examples and typical calls."""
    old, new = _by_name(before), _by_name(after)
    probes = list(_unique([*_examples(before), *_examples(after), *calls, *_probes(before, after)]))
    changed = [
        DifferingCall(
            operation=probe.operation,
            arguments=probe.arguments,
            before=was,
            after=now,
            tier=probe.tier,
            levels=probe.levels,
        )
        for probe in probes
        if (was := judge_example(before, probe)).verdict != (now := judge_example(after, probe)).verdict
    ]
    return PolicyDiff(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        altered=tuple(
            name for name in new if name in old and _without_source(old[name]) != _without_source(new[name])
        ),
        changed=tuple(changed),
        sandboxes=(before.sandboxes, after.sandboxes),
        probes=len(probes),
    )


def _by_name(policy: RulePolicy) -> dict[str, Rule]:
    return {rule.name: rule for rule in policy.document.rules}


def _without_source(rule: Rule) -> Rule:
    return msgspec.structs.replace(rule, source="", matches=(), misses=())


def _examples(policy: RulePolicy) -> Iterator[Example]:
    for rule in policy.document.rules:
        yield from rule.matches + rule.misses


def _probes(*policies: RulePolicy) -> Iterator[Example]:
    tools: dict[str, Tool] = {}
    for policy in policies:
        tools |= policy.document.tools
    rules = [rule for policy in policies for rule in policy.document.rules]
    values = _probe_values(rules)
    for tool in (KNOWN_TOOLS | tools).values():
        calls = [_arguments(tool, values, number) for number in range(max(map(len, values.values())))]
        limited = [calls[0] | changed for rule in rules for changed in _argument_probes(rule, tool)]
        calls += limited
        for arguments in calls:
            yield Example(operation=tool.name, arguments=arguments)
            if has_tier(tool):
                yield Example(operation=tool.name, arguments=arguments, tier="copy")
        if any(policy.labels for policy in policies):
            for arguments in (calls[0], *limited):
                yield from _level_probes(tool, arguments)


def _level_probes(tool: Tool, arguments: JsonObject) -> Iterator[Example]:
    """A call with each argument out of lower hands, and one of an author who had been shown a stranger's words."""
    yield Example(operation=tool.name, arguments=arguments, levels=CallLevels(author="stranger"))
    for name in arguments:
        for level in LEVELS[1:]:
            yield Example(
                operation=tool.name, arguments=arguments, levels=CallLevels(arguments={name: level})
            )


def _probe_values(rules: Iterable[Rule]) -> dict[str, tuple[str, ...]]:
    """Typical values of each kind, and those that the rules name."""
    hosts, commands = dict.fromkeys(_PROBES["host"]), dict.fromkeys(_PROBES["command"])
    for rule in rules:
        patterns = rule.hosts.patterns if rule.hosts is not None else ()
        hosts |= dict.fromkeys(each for each in patterns if not set("*:[") & set(each))
        prefixes = rule.commands.prefixes if rule.commands is not None else ()
        commands |= dict.fromkeys(shlex.join(word[0] for word in prefix) for prefix in prefixes)
    return _PROBES | {"host": tuple(hosts), "command": tuple(commands)}


def _argument_probes(rule: Rule, tool: Tool) -> Iterator[JsonObject]:
    """Values on both sides of the limits that a rule sets for an argument of this tool."""
    if not any(matches_operation(operation, tool.name) for operation in rule.operations):
        return
    for test in rule.arguments:
        if test.argument in (tool.roles or {}):
            limits = [each for each in (test.at_least, test.at_most) if each is not None]
            numbers: list[Json] = [limit + step for limit in limits for step in (-1, 0, 1)]
            for value in (*test.one_of, *test.prefixes, *numbers):
                yield {test.argument: value}


def _arguments(tool: Tool, values: Mapping[str, tuple[str, ...]], number: int) -> JsonObject:
    arguments: JsonObject = {}
    for argument, roles in (tool.roles or {}).items():
        kind = "name"
        if "command" in roles.default:
            # `argv` and `script` exclude each other, and every argument list can be written as a script.
            if argument == "script":
                arguments[argument] = values["command"][number % len(values["command"])]
            continue
        if set(roles.default) & set(PATH_ROLES):
            kind = "path"
        elif "proxy-domain" in roles.default:
            kind = "host"
        elif set(roles.default) & set(URL_ROLES):
            kind = "url"
        elif set(roles.default) <= DATA_ROLES:
            if argument in _required(tool):
                arguments[argument] = "x"
            continue
        arguments[argument] = values[kind][number % len(values[kind])]
    return arguments


def _required(tool: Tool) -> list[Json]:
    required = tool.parameters.get("required")
    return required if isinstance(required, list) else []


def _unique(examples: Iterable[Example]) -> Iterator[Example]:
    seen: set[bytes] = set()
    for example in examples:
        key = msgspec.json.encode(
            [example.operation, example.arguments, example.tier, example.levels], order="deterministic"
        )
        if key not in seen:
            seen.add(key)
            yield example
