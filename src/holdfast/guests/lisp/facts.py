"""What a program has asserted: a set that only grows."""

from typing import final

from holdfast.guests.lisp.canonical import Allowance, canonical, signature
from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.faults import Fault


@final
class Fact:
    """Something asserted, with what speaks for it, and when. A keyed fact also has a value, and keeps it."""

    __slots__ = ("asserted_ms", "evidence", "expression", "value")

    def __init__(self, expression: Datum, evidence: Datum, value: Datum, asserted_ms: int) -> None:
        self.expression, self.evidence, self.value = expression, evidence, value
        self.asserted_ms = asserted_ms


@final
class FactStore:
    """Facts in the order they came. Nothing is ever taken back."""

    __slots__ = ("facts",)

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}

    def add(self, key: str, fact: Fact, allowance: Allowance) -> bool:
        """Whether it is new. `key` is its expression, canonical. Raises a fault where it had another value before."""
        known = self.facts.setdefault(key, fact)
        if known is fact:
            return True
        if canonical(known.value, allowance) != canonical(fact.value, allowance):
            raise Fault(
                "fact-conflict", "this fact has another value already, and facts are never taken back"
            )
        return False

    def get(self, expression: Datum) -> Fact | None:
        """The fact, if it was asserted."""
        return self.facts.get(canonical(expression, Allowance()))

    def signature(self, allowance: Allowance) -> str:
        """Names the set, whatever the order."""
        return signature(
            [f"{allowance.take(key)}={canonical(fact.value, allowance)}" for key, fact in self.facts.items()]
        )
