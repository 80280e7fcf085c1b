"""The examples on the tutorial and guide pages produce the printed output."""

from pathlib import Path

import pytest
from tests.cli.console_examples import run_page

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


@pytest.mark.timeout(180)
def test_a_page_for_scripts_can_be_followed_on_a_fresh_machine(tmp_path: Path) -> None:
    run_page(DOCS / "guides" / "run-in-a-script.md", tmp_path)


@pytest.mark.timeout(300)
def test_the_tutorial_typed_at_a_terminal_shows_what_the_page_shows(tmp_path: Path) -> None:
    run_page(DOCS / "tutorial.md", tmp_path, is_typed=True)
