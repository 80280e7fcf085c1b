"""Every link in the documentation leads to something that is there, and every page is reached by one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    gone = [link for link in _LINK.findall(text) if "://" not in link and not (page.parent / link).exists()]
    assert not gone


def test_every_page_is_listed_in_an_index() -> None:
    docs = ROOT / "docs"
    indexes = [docs / "README.md", docs / "design" / "README.md"]
    listed = {
        (index.parent / link).resolve()
        for index in indexes
        for link in _LINK.findall(index.read_text(encoding="utf-8"))
    }
    assert {*docs.rglob("*.md")} - {*indexes} - listed == set()
