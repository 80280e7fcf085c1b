"""A rule prepared for matching: its tests, and when it decides a claim."""

from collections.abc import Iterable

from holdfast.core import Decision, Role, Target
from holdfast.policy.contract import Request
from holdfast.policy.document import Rule
from holdfast.policy.rule_tests.contract import CallTest, TargetTest
from holdfast.policy.rule_tests.table import prepare_tests
from holdfast.policy.targets import OPAQUE_ROLES


class PreparedRule:
    """One rule. `mismatch_reason` says why it does not match a claim; `decides` whether a rule that matches is final."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.verdict = rule.verdict
        self.operations = rule.operations
        self.scope = rule.scope
        self.is_unconditional = rule.is_unconditional
        self.host_roles = frozenset(rule.hosts.roles) if rule.hosts is not None else frozenset[Role]()
        """The roles whose hosts it lists. For other roles it matches public hosts only."""
        tests = prepare_tests(rule)
        self.target_tests = [test for test in tests if isinstance(test, TargetTest)]
        self.call_tests = [test for test in tests if isinstance(test, CallTest)]
        reason = rule.reason or rule.name
        self.decision = Decision(
            verdict=rule.verdict,
            rule=rule.name,
            reason=f"{reason}; instead: {rule.instead}" if rule.instead else reason,
            source=rule.source,
            wait_seconds=rule.wait_seconds,
        )
        is_about_the_call = not self.scope or self.scope <= OPAQUE_ROLES
        self._applies_to_bare_call = is_about_the_call
        # Opaque roles have no claims of their own, so a restrictive rule about one applies to every claim of the call.
        self._applies_to_all_roles = not self.scope or (is_about_the_call and rule.is_restrictive)

    def applies_to_role(self, role: Role | None) -> bool:
        """Whether the rule applies to claims of this role."""
        return role in self.scope or (
            self._applies_to_bare_call if role is None else self._applies_to_all_roles
        )

    def mismatch_reason(self, role: Role | None, target: Target | None, request: Request) -> str | None:
        """Why the rule does not match this claim; None if it does, even if it matches only some of the other values."""
        if self.is_unconditional:
            return None
        if not self.applies_to_role(role):
            return "it applies to other roles"
        if self.scope and role not in self.scope and not _with_roles(request.targets, self.scope):
            return "it applies to arguments that the call does not have"
        for test in self.target_tests:
            if not _passes(test, role, target, request):
                return test.mismatch_of(target)
        is_partial = self.rule.is_restrictive
        for call_test in self.call_tests:
            if not (call_test.matches_part(request) if is_partial else call_test.matches(request)):
                return call_test.mismatch_in(request)
        return None

    def decides(self, role: Role | None, target: Target | None, request: Request) -> bool:
        """Whether a rule that matches a claim is final. A deny rule is; any other rule only if it matches everything it tests,
        including the call's other values and everything beneath a folder.

        A rule that matches only part of it sets the minimum strictness, and later rules decide. Otherwise one more value in
        the call could lift a deny or avoid an escalation.
        """
        if self.verdict == "deny" or self.is_unconditional:
            return True
        if self.scope and role is not None and role not in self.scope:
            return False
        for test in self.target_tests:
            if role not in test.roles:
                others = _with_roles(request.targets, test.roles)
                if not all(test.matches(other, request) for other in others):
                    return False
            elif self.rule.is_restrictive and (target is None or not test.matches(target, request)):
                return False
        return not self.rule.is_restrictive or all(test.matches(request) for test in self.call_tests)


def _passes(test: TargetTest, role: Role | None, target: Target | None, request: Request) -> bool:
    """A test of the claim's own role tests its target. A test of other roles needs one match among all targets of the call."""
    if role in test.roles:
        return target is not None and test.matches_part(target, request)
    return any(test.matches_part(other, request) for other in _with_roles(request.targets, test.roles))


def _with_roles(targets: Iterable[Target], roles: frozenset[Role]) -> list[Target]:
    return [target for target in targets if target.role in roles]
