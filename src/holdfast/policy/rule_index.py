"""Finds the few rules that can speak of a claim among many, in their order."""

from holdfast.core import Role, Target
from holdfast.policy.matching import CompiledRule
from holdfast.policy.rules import names_operation


class RuleIndex:
    """Rules by operation."""

    def __init__(self, rules: list[CompiledRule]) -> None:
        self._rules = rules
        self._by_operation: dict[str, tuple[CompiledRule, ...]] = {}

    def for_operation(self, operation: str) -> tuple[CompiledRule, ...]:
        """The rules that name an operation, in order."""
        found = self._by_operation.get(operation)
        if found is None:
            found = self._by_operation[operation] = tuple(
                rule
                for rule in self._rules
                if any(names_operation(pattern, operation) for pattern in rule.operations)
            )
        return found

    def candidates(
        self, operation: str, role: Role | None, target: Target | None
    ) -> tuple[CompiledRule, ...]:
        """The rules that may hold for a claim, in order; every rule that does hold is among them."""
        return self.for_operation(operation)
