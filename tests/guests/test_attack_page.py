"""The page of attacks tells of every attack, and of no escape."""

import pytest
from tests.guests.attack_table import ENGINES, PAGE
from tests.guests.hostile import attacks


def rows() -> dict[str, list[str]]:
    """The table of the page: how each attack ended, by engine."""
    found = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "attack":
            found[cells[0]] = cells[1:]
    return found


def test_the_page_tells_of_every_attack_in_every_engine() -> None:
    table = rows()
    assert sorted(table) == sorted(attacks())
    assert {len(endings) for endings in table.values()} == {len(ENGINES)}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_page_tells_of_no_escape(engine: str) -> None:
    column = ENGINES.index(engine)
    assert [name for name, endings in rows().items() if endings[column] == "ESCAPE"] == []
