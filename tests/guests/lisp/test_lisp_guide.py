"""The guide to Lisp is correct: its examples run, and it names every procedure and form."""

import re
from pathlib import Path

import pytest
from tests.guests.lisp.programs import Host, new_guest, run, value

from holdfast.guests.lisp.lang.expander import RESERVED
from holdfast.guests.lisp.lib import library

GUIDE = Path(__file__).parents[3].joinpath("docs/guides/lisp.md").read_text("utf-8")
BLOCKS = re.findall(r"```lisp\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture(scope="module")
def examples() -> list[tuple[str, str]]:
    """Each example with its documented value, in the order of the page."""
    found = []
    for block in BLOCKS:
        code = ""
        for line in block.splitlines():
            before, _, expected = line.partition(";=>")
            code += before + "\n"
            if expected:
                found.append((code, expected.strip()))
                code = ""
        found.append((code, ""))
    return found


async def test_every_example_in_the_guide_has_the_documented_value(examples: list[tuple[str, str]]) -> None:
    host, guest = Host(files={"notes.txt": "buy milk"}), new_guest()

    assert sum(bool(expected) for _, expected in examples) > 40
    for code, expected in examples:
        ended = await run(code, host, guest=guest)
        assert ended.status == "ok", f"{code}: {ended.error}"
        if expected:
            assert ended.value == await value(expected), code


def test_the_guide_names_every_procedure_and_form() -> None:
    named = set(re.findall(r"[^\s`()]+", " ".join(re.findall(r"`([^`\n]+)`", GUIDE)))) | set(
        re.findall(r"[^\s()'`,]+", " ".join(BLOCKS))
    )
    public = {name for name in library().cells if not name.startswith("%")}

    missing = {name for name in public | RESERVED if name not in named and not name.startswith("%")}
    assert missing == set()
