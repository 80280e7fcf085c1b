"""A second evaluator, written to be checked by reading: no index, no cache, no compiled form, every rule tried."""

from tests.policy.reference_patterns import argument, beneath, command, glob, host, name, op

from holdfast.core import CommandTarget, NameTarget, PathTarget, Target, UrlTarget, Verdict
from holdfast.policy import PolicyDocument, Request, Rule
from holdfast.policy.document import CommandTest

OPAQUE = {"branch-name", "commit-message", "email-body", "share-permission", "content", "none"}
ORDER = ["allow", "stage", "escalate", "deny"]
HOLDS_UP = {"deny", "escalate"}


def judge(document: PolicyDocument, request: Request) -> Verdict:
    paths = [target.location for target in request.targets if isinstance(target, PathTarget)]
    if any(path.protected or path.problem for path in paths):
        return "deny"
    operation = request.call.operation
    if operation.split(".")[0] in document.trusted_groups:
        return "allow"
    if request.tool is None or request.tool.roles is None:
        return "deny"
    allowed = document.allowed_operations
    if any(op(p, operation) for p in document.denied_operations):
        return "deny"
    if allowed is not None and not any(op(p, operation) for p in allowed):
        return "deny"
    claims: list[tuple[str | None, Target | None]] = [
        (t.role, t) for t in request.targets if t.role not in OPAQUE
    ]
    claims += [(role, None) for role in meant(request) - OPAQUE - {role for role, _ in claims}]
    verdicts = [claim(document, role, target, request) for role, target in claims or [(None, None)]]
    return max(verdicts, key=ORDER.index)


def meant(request: Request) -> set[str]:
    assert request.tool is not None
    found: set[str] = set()
    for roles in (request.tool.roles or {}).values():
        given = [w.roles for w in roles.when if request.call.arguments.get(w.condition.argument) is True]
        found |= set(given[0] if given else roles.default)
    return found


def claim(document: PolicyDocument, role: str | None, target: Target | None, request: Request) -> Verdict:
    gate = document.host_gates.get(request.call.operation.split(".")[0])
    is_known = not isinstance(target, UrlTarget) or any(
        host(p, target, groups=groups(target, request)) for p in (["*"] if gate is None else gate)
    )
    least: list[Verdict] = []
    for rule in document.rules:
        if (fit := fits(rule, role, target, request)) is not None:
            names_host = gate is None and rule.hosts is not None and role in rule.hosts.roles
            least.append(rule.verdict if is_known or rule.verdict == "deny" or names_host else "escalate")
            if fit == "wholly":
                return max(least, key=ORDER.index)
    return max([*least, "deny" if is_known or gate is None else "escalate"], key=ORDER.index)


def fits(rule: Rule, role: str | None, target: Target | None, request: Request) -> str | None:
    tests = [test for test in (rule.paths, rule.hosts, rule.commands, *rule.names) if test is not None]
    scope = set(rule.roles) or {one for test in tests for one in test.roles}
    is_whole = not scope or role is None or role in scope
    for_deny = rule.verdict in HOLDS_UP
    if not any(op(pattern, request.call.operation) for pattern in rule.operations):
        return None
    if scope and role not in scope:
        is_of_call = scope <= OPAQUE and (role is None or for_deny)
        if not is_of_call or not any(t.role in scope for t in request.targets):
            return None
    if rule.takes_no_arguments and request.call.arguments:
        return None
    if rule.tiers and request.facts.tier not in rule.tiers:
        return None
    for test in tests:
        subjects = [target] if role in test.roles else [t for t in request.targets if t.role in test.roles]
        passed = [passes(rule, test, subject, request) for subject in subjects]
        caught = [for_deny and part(test, one, request.targets) for one in subjects]
        if not any(passed + caught):
            return None
        is_whole = is_whole and all(passed)
    for one in rule.arguments:
        some, every = argument(one, request, for_deny)
        if not (some if for_deny else every):
            return None
        is_whole = is_whole and every
    return "wholly" if is_whole or rule.verdict == "deny" else "partly"


def part(test: object, target: Target | None, targets: tuple[Target, ...]) -> bool:
    if isinstance(test, CommandTest) and isinstance(target, CommandTarget):
        return command(test, target, for_deny=True)[0]
    return beneath(test, target, targets)


def passes(rule: Rule, test: object, target: Target | None, request: Request) -> bool:
    for_deny = rule.verdict in HOLDS_UP
    if isinstance(test, CommandTest):
        return isinstance(target, CommandTarget) and command(test, target, for_deny)[1]
    if isinstance(target, PathTarget) and test is rule.paths and rule.paths is not None:
        inside, real = target.location.inside, target.location.real
        hit = any((real + "/").startswith(folder + "/") for folder in rule.paths.folders)
        if inside is None:
            return hit or rule.paths.outside
        return hit or rule.paths.inside or any(glob(p, inside, for_deny) for p in rule.paths.globs)
    if isinstance(target, UrlTarget) and test is rule.hosts and rule.hosts is not None:
        return any(
            host(pattern, target, for_deny, groups(target, request)) for pattern in rule.hosts.patterns
        )
    if isinstance(target, NameTarget):
        return any(name(pattern, target.value, for_deny) for pattern in getattr(test, "names", ()))
    return False


def groups(target: UrlTarget, request: Request) -> tuple[str, ...]:
    return request.facts.host_groups.get(target.host, ())
