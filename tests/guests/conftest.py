"""What tests of guests in whole sessions share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.guests.engines import KEY, component_cache

from holdfast import Runtime
from holdfast.guests import Engines


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    """A runtime with every engine, in a home of its own."""
    made = await Runtime.start(home=tmp_path / "home", engines=Engines(key=KEY, cache=component_cache()))
    yield made
    await made.close()
