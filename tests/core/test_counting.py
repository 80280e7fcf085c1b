"""Numbers of things in words."""

import pytest

from holdfast.core import pluralize


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0, "0 turns"),
        (1, "1 turn"),
        (1.0, "1 turn"),
        (2, "2 turns"),
        (2.5, "2.5 turns"),
        (1200, "1,200 turns"),
    ],
)
def test_one_is_no_plural(number: float, told: str) -> None:
    assert pluralize(number, "turn") == told


def test_a_plural_may_be_given() -> None:
    assert (pluralize(1, "reply", "replies"), pluralize(2, "reply", "replies")) == ("1 reply", "2 replies")
