"""Suggests rules from the prompts that a person answered: few rules that would have answered the approved ones, and none that
allows what was denied.

Each approved call makes candidate rules, from its folder, host, command prefix or argument values. A candidate counts only if
the policy with it still denies or asks about every call that was denied. Then the one that answers most of the open prompts is
taken, until none answers any more.
"""

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from holdfast.core import (
    CommandTarget,
    Json,
    JsonObject,
    PathTarget,
    SandboxTier,
    Target,
    UrlTarget,
    Value,
    Verdict,
    digest,
    restricts,
)
from holdfast.policy.contract import Request
from holdfast.policy.document import (
    ArgumentTest,
    CommandTest,
    Example,
    HostTest,
    PathTest,
    PolicyDocument,
    Rule,
)
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.extend import deny_first
from holdfast.policy.targets import DATA_ROLES, roles_of

MAX_EXAMPLES = 2


class AnsweredPrompt(NamedTuple):
    """A call that waited for a person, and the answer."""

    request: Request
    is_approved: bool
    is_staged: bool = False
    """Whether the approved call was only staged."""


class SuggestedRule(Value):
    """A rule, how many approved prompts it answers, and how the person would write it."""

    rule: Rule
    answers: int
    yaml: str


class Suggestions(Value):
    """The rules, the prompts that no rule answers, and the policy with the rules."""

    rules: tuple[SuggestedRule, ...]
    prompts: int
    answered: int
    policy: PolicyDocument


def suggest(
    base: RulePolicy, prompts: Iterable[AnsweredPrompt], *, denied: Iterable[Request] = ()
) -> Suggestions:
    """Suggest rules on top of a policy. `denied` are more calls that must stay denied, such as those the policy refused."""
    answered = list(prompts)
    refused = [one.request for one in answered if not one.is_approved] + list(denied)
    refused = [one for one in refused if restricts(base.judge(one).verdict)]
    waiting = [one for one in answered if one.is_approved and restricts(base.judge(one.request).verdict)]
    chosen: list[Rule] = []
    # A suggested rule is about one operation, so each operation is searched by itself.
    for operation in dict.fromkeys(one.request.call.operation for one in waiting):
        open_prompts = [one for one in waiting if one.request.call.operation == operation]
        closed = [one for one in refused if one.call.operation == operation]
        chosen += _search(base.document, open_prompts, closed)
    left = _unanswered(_policy(base.document, chosen), waiting)
    merged = _merged(chosen)
    policy = _policy(base.document, merged)
    if _allows_any(policy, refused) or len(_unanswered(policy, waiting)) > len(left):
        merged = chosen
    found: list[SuggestedRule] = []
    for number, rule in enumerate(merged, start=1):
        alone = _policy(base.document, [rule])
        matches = [one.request for one in waiting if not restricts(alone.judge(one.request).verdict)]
        named = _named(rule, number, matches, refused)
        found.append(SuggestedRule(rule=named, answers=len(matches), yaml=rule_yaml(named)))
    document = _policy(base.document, [one.rule for one in found]).document
    return Suggestions(
        rules=tuple(found), prompts=len(waiting), answered=len(waiting) - len(left), policy=document
    )


def _search(
    document: PolicyDocument, waiting: Sequence[AnsweredPrompt], refused: Sequence[Request]
) -> list[Rule]:
    candidates = list(_unique(rule for one in waiting for rule in _candidates(one)))
    chosen: list[Rule] = []
    left = list(waiting)
    while left and (best := _best(document, chosen, candidates, left, refused)) is not None:
        chosen.append(best)
        left = _unanswered(_policy(document, chosen), left)
    return chosen


def _best(
    document: PolicyDocument,
    chosen: Sequence[Rule],
    candidates: Sequence[Rule],
    left: Sequence[AnsweredPrompt],
    refused: Sequence[Request],
) -> Rule | None:
    """The safe candidate that answers most of what is left; of equals, the first and narrowest."""
    best, most = None, 0
    for rule in candidates:
        if most == len(left):
            break
        policy = _policy(document, [*chosen, rule])
        count = len(left) - len(_unanswered(policy, left))
        if count > most and not _allows_any(policy, refused):
            best, most = rule, count
    return best


def _policy(document: PolicyDocument, rules: Sequence[Rule]) -> RulePolicy:
    return RulePolicy(msgspec.structs.replace(document, rules=deny_first([*rules, *document.rules])))


def _unanswered(policy: RulePolicy, prompts: Sequence[AnsweredPrompt]) -> list[AnsweredPrompt]:
    return [one for one in prompts if restricts(policy.judge(one.request).verdict)]


def _allows_any(policy: RulePolicy, refused: Sequence[Request]) -> bool:
    return any(not restricts(policy.judge(one).verdict) for one in refused)


def _merged(rules: Sequence[Rule]) -> list[Rule]:
    """The rules with those that differ only in what one test lists joined into one."""
    found: list[Rule] = []
    for rule in rules:
        for place, other in enumerate(found):
            if (joined := _joined(other, rule)) is not None:
                found[place] = joined
                break
        else:
            found.append(rule)
    return found


def _joined(one: Rule, other: Rule) -> Rule | None:
    replace = msgspec.structs.replace
    if one.paths is not None and other.paths is not None and replace(one, paths=other.paths) == other:
        paths = replace(
            one.paths,
            globs=one.paths.globs + other.paths.globs,
            folders=one.paths.folders + other.paths.folders,
        )
        return replace(one, paths=paths)
    if one.hosts is not None and other.hosts is not None and replace(one, hosts=other.hosts) == other:
        return replace(one, hosts=replace(one.hosts, patterns=one.hosts.patterns + other.hosts.patterns))
    if (
        one.commands is not None
        and other.commands is not None
        and replace(one, commands=other.commands) == other
    ):
        prefixes = one.commands.prefixes + other.commands.prefixes
        return replace(one, commands=replace(one.commands, prefixes=prefixes))
    if len(one.arguments) == len(other.arguments) == 1 and replace(one, arguments=other.arguments) == other:
        test, more = one.arguments[0], other.arguments[0]
        if test.argument == more.argument:
            return replace(one, arguments=(replace(test, one_of=test.one_of + more.one_of),))
    return None


def _candidates(prompt: AnsweredPrompt) -> Iterator[Rule]:
    """Rules that would answer a prompt, narrow ones first."""
    call, targets = prompt.request.call, prompt.request.targets
    verdict: Verdict = "stage" if prompt.is_staged else "allow"
    rule = Rule(name=call.operation, verdict=verdict, operations=(call.operation,))
    for target in targets:
        yield from _for_target(rule, target)
    tool = prompt.request.tool
    if tool is None or any(target.role not in DATA_ROLES for target in targets):
        return
    roles = roles_of(tool, call.arguments)
    values = {
        name: value
        for name, value in call.arguments.items()
        if roles.get(name) == ("none",) and not isinstance(value, dict | list)
    }
    if values:
        tests = tuple(ArgumentTest(argument=name, one_of=(value,)) for name, value in sorted(values.items()))
        yield msgspec.structs.replace(rule, arguments=tests)
        for name, value in sorted(values.items()):
            yield msgspec.structs.replace(rule, arguments=(ArgumentTest(argument=name, one_of=(value,)),))
    yield rule if call.arguments else msgspec.structs.replace(rule, takes_no_arguments=True)


def _for_target(rule: Rule, target: Target) -> Iterator[Rule]:
    match target:
        case PathTarget(location=location) if location.problem is None and location.protected is None:
            folder = posixpath.dirname(location.inside if location.inside is not None else location.real)
            globs = (f"{_literal(folder)}/**" if folder else "*",) if location.inside is not None else ()
            folders = (folder,) if location.inside is None and folder not in ("", "/") else ()
            if globs or folders:
                paths = PathTest(roles=(target.role,), globs=globs, folders=folders)
                yield msgspec.structs.replace(rule, roles=(target.role,), paths=paths)
        case UrlTarget(problem=None) if target.host:
            hosts = HostTest(roles=(target.role,), patterns=(target.host,))
            yield msgspec.structs.replace(rule, roles=(target.role,), hosts=hosts)
        case CommandTarget(is_opaque=False) if not target.sets_environment:
            words = [(word,) for word in target.words[:2] if word == target.words[0] or word[:1].isalnum()]
            yield msgspec.structs.replace(rule, commands=CommandTest(prefixes=(tuple(words),)))
        case _:
            return


def _named(rule: Rule, number: int, matches: Sequence[Request], refused: Sequence[Request]) -> Rule:
    operation = rule.operations[0]
    misses = [one for one in refused if one.call.operation == operation]
    return msgspec.structs.replace(
        rule,
        name=f"suggested-{number}-{operation.replace('.', '-').replace('?', '')}",
        reason="you approved such calls",
        matches=_examples(matches),
        misses=_examples(misses),
    )


def _examples(requests: Sequence[Request]) -> tuple[Example, ...]:
    small = [one for one in requests if one.call.large is None]
    return tuple(
        Example(operation=one.call.operation, arguments=one.call.arguments, tier=_tier(one))
        for one in small[:MAX_EXAMPLES]
    )


def _tier(request: Request) -> SandboxTier:
    return request.facts.tier or "full"


def _unique(rules: Iterable[Rule]) -> Iterator[Rule]:
    seen: set[str] = set()
    for rule in rules:
        if (key := digest(rule)) not in seen:
            seen.add(key)
            yield rule


def _literal(folder: str) -> str:
    return "".join("?" if letter in "*?[]" else letter for letter in folder)


def rule_yaml(rule: Rule) -> str:
    """A rule as it is written in a policy file. JSON is YAML, so every value is exact."""
    lines = [f"  - name: {rule.name}", f"    {rule.verdict}: {_flow(list(rule.operations))}"]
    if rule.roles:
        lines.append(f"    roles: {_flow(list(rule.roles))}")
    if rule.paths is not None and rule.paths.globs:
        lines.append(f"    paths: {_flow(list(rule.paths.globs))}")
    if rule.paths is not None and rule.paths.folders:
        lines.append(f"    within: {_flow(list(rule.paths.folders))}")
    if rule.hosts is not None:
        lines.append(f"    hosts: {_flow(list(rule.hosts.patterns))}")
    if rule.commands is not None:
        prefixes: list[Json] = [[list(words) for words in prefix] for prefix in rule.commands.prefixes]
        lines.append(f"    commands: {_flow(prefixes)}")
    if rule.takes_no_arguments:
        lines.append("    arguments: none")
    if rule.arguments:
        tests: JsonObject = {test.argument: {"one_of": list(test.one_of)} for test in rule.arguments}
        lines.append(f"    arguments: {_flow(tests)}")
    lines.append(f"    because: {_flow(rule.reason)}")
    if rule.matches or rule.misses:
        lines.append("    examples:")
    for key, examples in (("matches", rule.matches), ("misses", rule.misses)):
        if examples:
            lines.append(f"      {key}:")
            lines += [f"        - {_flow(_example(one))}" for one in examples]
    return "\n".join(lines) + "\n"


def _example(example: Example) -> JsonObject:
    return {example.operation: example.arguments} | ({"tier": example.tier} if example.tier != "full" else {})


def _flow(value: Json) -> str:
    return msgspec.json.encode(value).decode()
