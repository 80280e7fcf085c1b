"""The contract of a rule test: one condition of a rule, prepared for matching.

A test has two readings. A rule that allows or stages reads it narrowly, a rule that denies or escalates reads it widely, so
that what is not certain is never allowed and always held up.
"""

from typing import ClassVar

from holdfast.core import Role, Target
from holdfast.policy.contract import Request


class RuleTest:
    """One condition of a rule."""

    mismatch: ClassVar[str]
    """Why a rule does not match if this test fails; `policy explain` shows it."""

    def mismatch_in(self, request: Request) -> str:
        """Why the rule does not match this request."""
        return self.mismatch

    def index_keys(self) -> frozenset[str] | None:
        """The keys one of which a claim must have for the test to pass; None if any claim may pass."""
        return None


class TargetTest(RuleTest):
    """A test of targets with certain roles."""

    roles: frozenset[Role]

    def mismatch_of(self, target: Target | None) -> str:
        """Why the rule does not match this target."""
        return self.mismatch

    def matches(self, target: Target, request: Request) -> bool:
        """Whether the whole target matches."""
        raise NotImplementedError

    def matches_part(self, target: Target, request: Request) -> bool:
        """Whether the target matches, or part of it does, such as a file in a folder that is deleted."""
        return self.matches(target, request)


class CallTest(RuleTest):
    """A test of the call as a whole."""

    def matches(self, request: Request) -> bool:
        """Whether everything that it tests matches."""
        raise NotImplementedError

    def matches_part(self, request: Request) -> bool:
        """Whether part of what it tests matches, such as one element of a list."""
        return self.matches(request)
