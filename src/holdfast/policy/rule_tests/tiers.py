"""Tests of the sandbox: `tier`."""

from holdfast.core import SandboxTier
from holdfast.policy.contract import Request
from holdfast.policy.rule_tests.contract import CallTest


class TierMatcher(CallTest):
    """`tier`: the tiers of the sandbox that a command runs in. A call outside a sandbox has none."""

    mismatch = "the sandbox has another tier"

    def __init__(self, tiers: tuple[SandboxTier, ...]) -> None:
        self._tiers = tiers

    def matches(self, request: Request) -> bool:
        return request.facts.tier in self._tiers
