"""The WASI guest under the suite that every engine passes."""

from pathlib import Path

import pytest
from tests.guests.engines import PYTHON, Candidate
from tests.guests.test_guest_contract import *  # noqa: F403
from tests.guests.wasi.running import KEY

from holdfast.guests.wasi import wasi_engine


@pytest.fixture  # type: ignore[no-redef]
def candidate(cache: Path, workspace: Path) -> Candidate:
    """This engine, with the programs of Python."""
    return Candidate(make=lambda _: wasi_engine(key=KEY, cache=cache, workspace=workspace), programs=PYTHON)
