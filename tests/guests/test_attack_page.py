"""The page of attacks lists every attack and no escape, and SECURITY.md has its totals."""

import pytest
from tests.guests.attack_table import PAGE, PYTHONS, SECURITY, Table, summary
from tests.guests.hostile import attacks
from tests.guests.lisp.attacks import lisp_attacks

ENGINES = (*PYTHONS, "lisp")


def table() -> Table:
    """How each attack ended, according to the page."""
    found: Table = {engine: {} for engine in ENGINES}
    heads: list[str] = []
    for line in PAGE.read_text().splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if name in ("attack", "attack in Lisp"):
            heads = cells
        elif heads and line.startswith("| "):
            for engine, ended in zip(heads, cells, strict=True):
                found[engine][name.strip()] = ended.strip()
    return found


def test_the_page_lists_every_attack_in_every_engine() -> None:
    read = table()
    for engine in PYTHONS:
        assert sorted(read[engine]) == sorted(attacks())
    assert sorted(read["lisp"]) == sorted(lisp_attacks())


@pytest.mark.parametrize("engine", ENGINES)
def test_the_page_lists_no_escape(engine: str) -> None:
    assert [name for name, ended in table()[engine].items() if ended == "ESCAPE"] == []


def test_the_page_and_the_security_policy_have_the_totals_of_the_table() -> None:
    counted = summary(table()).strip()
    assert counted in PAGE.read_text()
    assert counted in SECURITY.read_text()
