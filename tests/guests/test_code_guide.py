"""The guide to running code: each of its commands prints what the guide shows, and its program runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.console_examples import run_page
from tests.guests.test_exec_command import install_component

from holdfast.store import Home

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "run-code.md"


@pytest.mark.timeout(180)
def test_the_guide_can_be_followed(tmp_path: Path) -> None:
    install_component(Home(tmp_path / ".holdfast"))
    run_page(GUIDE, tmp_path)


def test_the_program_of_the_guide_runs(tmp_path: Path) -> None:
    [program] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    environment = os.environ | {"HOME": str(tmp_path), "HOLDFAST_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout == "Ok(value=45)\n"
