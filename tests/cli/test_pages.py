"""The pages that a newcomer follows: every command on them is typed, and shows what is printed."""

from pathlib import Path

import pytest
from tests.cli.pages import run_page

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.parametrize("page", ["tutorial.md", "guides/run-in-a-script.md"])
@pytest.mark.timeout(180)
def test_a_page_can_be_followed_from_an_empty_home(page: str, tmp_path: Path) -> None:
    run_page(DOCS / page, tmp_path)
