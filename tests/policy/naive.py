"""A second evaluator, written to be checked by reading: no index, no cache, no compiled form, every rule tried."""

from tests.policy.naive_patterns import argument, glob, host, literal, low, name

from holdfast.core import NameTarget, PathTarget, Target, UrlTarget, Verdict
from holdfast.policy import PolicyDocument, Request, Rule

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
        host(p, target) for p in (["*"] if gate is None else gate)
    )
    for rule in document.rules:
        if applies(rule, role, target, request):
            names_host = gate is None and rule.hosts is not None and role in rule.hosts.roles
            return rule.verdict if is_known or rule.verdict == "deny" or names_host else "escalate"
    return "deny" if is_known or gate is None else "escalate"


def applies(rule: Rule, role: str | None, target: Target | None, request: Request) -> bool:
    tests = [test for test in (rule.paths, rule.hosts, *rule.names) if test is not None]
    scope = set(rule.roles) or {one for test in tests for one in test.roles}
    if not any(op(pattern, request.call.operation) for pattern in rule.operations):
        return False
    if scope and role not in scope:
        is_of_call = scope <= OPAQUE and (role is None or rule.verdict in HOLDS_UP)
        if not is_of_call or not any(t.role in scope for t in request.targets):
            return False
    if rule.takes_no_arguments and request.call.arguments:
        return False
    for test in tests:
        subjects = [target] if role in test.roles else [t for t in request.targets if t.role in test.roles]
        enough = any if rule.verdict in HOLDS_UP else all
        if not subjects or not enough(passes(rule, test, subject) for subject in subjects):
            return False
    return all(argument(test, request) for test in rule.arguments)


def passes(rule: Rule, test: object, target: Target | None) -> bool:
    is_wide = rule.verdict in HOLDS_UP
    if isinstance(target, PathTarget) and test is rule.paths and rule.paths is not None:
        inside, real = target.location.inside, target.location.real
        folders = [folder + "/" for folder in rule.paths.folders]
        hit = any((real + "/").startswith(folder) for folder in folders)
        if is_wide and target.role == "delete-path":
            hit = hit or any(folder.startswith(real.rstrip("/") + "/") for folder in folders)
        if inside is None:
            return hit or rule.paths.outside
        if is_wide and target.role == "delete-path":
            starts = [literal(p) for p in rule.paths.globs]
            above = "" if inside == "." else low(inside) + "/"
            hit = hit or any(s and (s + "/").startswith(above) for s in starts)
        return hit or rule.paths.inside or any(glob(p, inside, is_wide) for p in rule.paths.globs)
    if isinstance(target, UrlTarget) and test is rule.hosts and rule.hosts is not None:
        return any(host(pattern, target, is_wide) for pattern in rule.hosts.patterns)
    if isinstance(target, NameTarget):
        return any(name(pattern, target.value, is_wide) for pattern in getattr(test, "names", ()))
    return False


def op(pattern: str, operation: str) -> bool:
    group, _, verb = operation.partition(".")
    return pattern in {"*", operation} or (bool(verb) and pattern in {f"{group}.*", f"*.{verb}"})
