"""The exact call in an approval: the diff of a write says what the file will have, and nothing else."""

import pytest

from holdfast.core import Call, call_id
from holdfast.services import call_lines
from holdfast.world import MemoryWorld


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (None, "all:\n", ["--- new file", "+++ proposed", "@@ -0,0 +1 @@", "+all:"]),
        (None, "", ["(a new empty file)"]),
        ("a\n", "a\n", ["(the file has this content already)"]),
        ("a\n", "b\n", ["--- current", "+++ proposed", "@@ -1 +1 @@", "-a", "+b"]),
        (
            "a\n",
            "a",
            ["--- current", "+++ proposed", "@@ -1 +1 @@", "-a", "+a", "\\ No newline at end of file"],
        ),
    ],
)
def test_a_write_is_shown_as_the_diff_that_it_makes(before: str | None, after: str, shown: list[str]) -> None:
    world = MemoryWorld({} if before is None else {"f": before.encode()})
    call = Call(id=call_id(1, 1), operation="world.write", arguments={"path": "f", "content": after})
    assert call_lines(call, world) == ["world.write", "  path: f", *(f"  {line}" for line in shown)]
