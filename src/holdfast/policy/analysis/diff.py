"""Compares two policies: their rules, and their decisions on a set of calls."""

from collections.abc import Iterable, Iterator

import msgspec

from holdfast.core import STRICTNESS, Decision, Json, JsonObject, Tool, Value
from holdfast.policy.analysis.examples import judge_example
from holdfast.policy.document import Example, Rule
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.targets import DATA_ROLES, PATH_ROLES, URL_ROLES
from holdfast.policy.tool_roles import KNOWN_TOOLS

_PROBES = {
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
}


Sandboxes = tuple[str, ...] | None


class DifferingCall(Value):
    """A call that the two policies decide differently."""

    operation: str
    arguments: JsonObject
    before: Decision
    after: Decision

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
        DifferingCall(operation=probe.operation, arguments=probe.arguments, before=was, after=now)
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
    for tool in (KNOWN_TOOLS | tools).values():
        for number in range(max(len(values) for values in _PROBES.values())):
            yield Example(operation=tool.name, arguments=_arguments(tool, number))


def _arguments(tool: Tool, number: int) -> JsonObject:
    arguments: JsonObject = {}
    for argument, roles in (tool.roles or {}).items():
        kind = "name"
        if set(roles.default) & set(PATH_ROLES):
            kind = "path"
        elif set(roles.default) & set(URL_ROLES):
            kind = "url"
        elif set(roles.default) <= DATA_ROLES:
            if argument in _required(tool):
                arguments[argument] = "x"
            continue
        values = _PROBES[kind]
        arguments[argument] = values[number % len(values)]
    return arguments


def _required(tool: Tool) -> list[Json]:
    required = tool.parameters.get("required")
    return required if isinstance(required, list) else []


def _unique(examples: Iterable[Example]) -> Iterator[Example]:
    seen: set[bytes] = set()
    for example in examples:
        key = msgspec.json.encode([example.operation, example.arguments], order="deterministic")
        if key not in seen:
            seen.add(key)
            yield example
