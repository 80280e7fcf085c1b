"""Outcomes are values with a small algebra."""

import pytest

from holdfast.core import (
    Cycle,
    Error,
    Json,
    Needs,
    Nonconverged,
    Ok,
    Outcome,
    Proposed,
    bind,
    is_blocked,
    is_success,
    read_outcome,
)

OTHERS: list[Outcome] = [
    Proposed(value=1, proposals=("a.txt",)),
    Needs(need="clarification", description="which?"),
    Nonconverged(value=1, iterations=3, reason="max-iterations"),
    Cycle(value=1, length=2, signatures=("a", "b")),
    Error(message="it broke", code="broken"),
]


def double(value: Json) -> Outcome:
    assert isinstance(value, int)
    return Ok(value=value * 2)


def test_bind_applies_the_function_to_the_value_of_ok() -> None:
    assert bind(Ok(value=3), double) == Ok(value=6)
    assert bind(bind(Ok(value=3), double), lambda _: OTHERS[1]) == OTHERS[1]


@pytest.mark.parametrize("outcome", OTHERS, ids=lambda each: type(each).__name__)
def test_bind_returns_every_other_outcome_unchanged(outcome: Outcome) -> None:
    def never(_: Json) -> Outcome:
        raise AssertionError("it must not run")

    assert bind(outcome, never) is outcome


def test_binding_is_associative() -> None:
    def add(value: Json) -> Outcome:
        assert isinstance(value, int)
        return Ok(value=value + 1)

    for start in (Ok(value=1), *OTHERS):
        assert bind(bind(start, double), add) == bind(start, lambda value: bind(double(value), add))


def test_success_is_ok_or_proposed_and_blocked_is_needs_or_error() -> None:
    every = [Ok(), *OTHERS]
    assert [type(each) for each in every if is_success(each)] == [Ok, Proposed]
    assert [type(each) for each in every if is_blocked(each)] == [Needs, Error]


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        ({"outcome": "ok", "value": 1}, Ok(value=1)),
        (
            {"outcome": "needs", "need": "evidence", "description": "a log"},
            Needs(need="evidence", description="a log"),
        ),
        ({"outcome": "no such"}, None),
        ({"outcome": "needs"}, None),
        ({"value": 1}, None),
        ([1], None),
        (None, None),
    ],
)
def test_only_a_value_of_the_right_shape_is_read_as_an_outcome(value: Json, outcome: Outcome | None) -> None:
    assert read_outcome(value) == outcome
