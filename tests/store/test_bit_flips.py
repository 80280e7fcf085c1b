"""Bit flips at rest are salvaged or reported: nothing is hidden, and every error is one of ours."""

import random
import shutil
from pathlib import Path

import pytest
from tests.store.bit_flips import flip, furnish, look

from holdfast.store import Home

FILES = {"holdfast.db": "home", "holdfast.db-wal": "killed"}
"""The damaged file, in one of two homes: one that was closed, and one whose process was killed."""


async def check(tmp_path: Path, file: str, rounds: range) -> None:
    stored = await furnish(Home(tmp_path / "home"), tmp_path)
    for seed in rounds:
        damaged = tmp_path / "damaged"
        shutil.copytree(tmp_path / FILES[file], damaged)
        flip(damaged / file, random.Random(seed))
        assert await look(Home(damaged), stored) == [], f"seed {seed}"
        shutil.rmtree(damaged)


@pytest.mark.parametrize("file", FILES)
async def test_flipped_bits_hide_nothing(tmp_path: Path, file: str) -> None:
    await check(tmp_path, file, range(3))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("file", FILES)
async def test_thousands_of_flipped_bits_hide_nothing(tmp_path: Path, file: str) -> None:
    await check(tmp_path, file, range(3, 2003))
