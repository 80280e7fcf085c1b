"""Bits that turn over at rest are salvaged or told: nothing is hidden, and nothing ends in anything but an error of ours."""

import random
import shutil
from pathlib import Path

import pytest
from tests.store.flipping import flip, furnish, look

from holdfast.store import Home

FILES = {"holdfast.db": "home", "holdfast.db-wal": "killed"}
"""Which file is damaged, and in which of two homes: one that was closed, and one whose process was killed."""


async def check(tmp_path: Path, file: str, rounds: range) -> None:
    told = await furnish(Home(tmp_path / "home"), tmp_path)
    for seed in rounds:
        damaged = tmp_path / "damaged"
        shutil.copytree(tmp_path / FILES[file], damaged)
        flip(damaged / file, random.Random(seed))
        assert await look(Home(damaged), told) == [], f"seed {seed}"
        shutil.rmtree(damaged)


@pytest.mark.parametrize("file", FILES)
async def test_bits_that_turned_over_hide_nothing(tmp_path: Path, file: str) -> None:
    await check(tmp_path, file, range(3))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("file", FILES)
async def test_thousands_of_bits_that_turned_over_hide_nothing(tmp_path: Path, file: str) -> None:
    await check(tmp_path, file, range(3, 2003))
