"""The examples on the tutorial and guide pages produce the printed output."""

from pathlib import Path

import pytest
from tests.cli.console_examples import run_page

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


@pytest.mark.parametrize("page", ["tutorial.md", "guides/run-in-a-script.md"])
@pytest.mark.timeout(180)
def test_a_page_can_be_followed_on_a_fresh_machine(page: str, tmp_path: Path) -> None:
    run_page(DOCS / page, tmp_path)
