"""Cases of limits by their numbers: fuel, memory, and memory too small to begin with."""

from pathlib import Path

import pytest
from tests.guests.wasi.running import run

from holdfast.guests import Guest

CASES = {
    "B13": ({"steps": 1_000_000_000, "seconds": 60, "wall_seconds": 60}, "while True: pass", "limit", "1000000000 steps"),
    "B14": ({"memory_bytes": 128 << 20}, "x = bytearray(200 << 20)", "limit", "MemoryError"),
    "B15": ({"memory_bytes": 1 << 20}, "1 + 1", "limit", "memory"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_case(case: str, guest: Guest, workspace: Path) -> None:
    limits, code, status, told = CASES[case]
    (workspace / "kept").write_text("kept")
    ended = await run(guest, code, **limits)  # type: ignore[arg-type]
    assert ended.status == status
    assert told in ended.error
    if case == "B13":
        assert ended.steps == limits["steps"], "all of the budget was usable, and no more was used"
    assert (workspace / "kept").read_text() == "kept"
    assert (await run(guest, "open('kept').read()")).value == "kept"
