"""Names on disk and on the wire are there to stay: what version 0.1 reads and writes, every later version reads."""

import json
from typing import Any

import pytest
from tests.compat import formats

PINNED: dict[str, Any] = json.loads(formats.DATA.read_text())


@pytest.mark.parametrize("name", PINNED["structs"])
def test_every_field_tag_and_value_is_still_known(name: str) -> None:
    assert set(PINNED["structs"][name]) - set(formats.structs()[name]) == set()


@pytest.mark.parametrize("name", PINNED["required"])
def test_no_field_became_required(name: str) -> None:
    # Nothing that version 0.1 wrote contains a variant of a union, such as an event, that it did not know.
    known = {each for field in PINNED["structs"][name] for each in variants(field)}
    added = set(formats.required()[name]) - set(PINNED["required"][name])
    assert {field for field in added if set(variants(field)) <= known} == set()


def variants(field: str) -> list[str]:
    """The variants of unions that a field is in, outermost first, such as `(event=grant-given)`."""
    return [field[: end + 1] for end, letter in enumerate(field) if letter == ")"]


@pytest.mark.parametrize("name", PINNED["names"])
def test_every_name_is_still_there(name: str) -> None:
    assert set(PINNED["names"][name]) - set(formats.names()[name]) == set()


@pytest.mark.parametrize("name", PINNED["constants"])
def test_no_version_changed(name: str) -> None:
    assert json.loads(json.dumps(formats.constants()[name])) == PINNED["constants"][name]
