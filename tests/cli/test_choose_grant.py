"""Choosing a grant by its id, the start of it, or its number."""

import pytest

from holdfast.cli.approvals.choose_grant import choose_grant
from holdfast.core import Grant, GrantId, Principal
from holdfast.core.errors import InvalidInput


def grant(id: str) -> Grant:
    return Grant(
        id=GrantId(id),
        operation="world.write",
        rule="ask",
        targets=(),
        scope="session",
        given_by=Principal("person"),
        given_ms=0,
    )


GRANTS = (grant("ab12"), grant("ab34"), grant("2c56"))


@pytest.mark.parametrize(
    ("reference", "expected"),
    [("ab34", "ab34"), (" ab1", "ab12"), ("2", "ab34"), ("2c", "2c56"), ("3", "2c56")],
)
def test_a_grant_is_chosen_by_id_start_or_number(reference: str, expected: str) -> None:
    assert choose_grant(GRANTS, reference, hint="", is_numbered=True).id == expected


@pytest.mark.parametrize("reference", ["", "ab", "x", "0", "4", "²", "9" * 5000])
def test_nothing_and_several_are_refused(reference: str) -> None:
    with pytest.raises(InvalidInput):
        choose_grant(GRANTS, reference, hint="", is_numbered=True)


def test_without_numbers_a_digit_is_the_start_of_an_id() -> None:
    assert choose_grant(GRANTS, "2", hint="").id == "2c56"
