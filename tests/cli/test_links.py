"""Every link and every name in the documentation has a target, and every page is linked."""

import builtins
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PACKAGE = ROOT / "src" / "holdfast"
DESIGN = [ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs" / "design").glob("*.md"))]
DEFINED = {
    name
    for module in PACKAGE.rglob("*.py")
    for name in re.findall(
        r"(?:class|def) (\w+)|^ *(\w+)\b[^=\n(]*[:=]", module.read_text(encoding="utf-8"), re.M
    )
    for name in name
}
_FILE = re.compile(r"[\w/]+\.py\b")
_NAME = re.compile(r"(?:[a-z_]+[.:] ?)*([A-Z][a-z]+[A-Z]\w*|[A-Z][a-z]+(?=\.))(?:\.(\w+))?(?:\(.*\))?")
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_target(page: Path) -> None:
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


@pytest.mark.parametrize("page", DESIGN, ids=lambda page: page.stem)
def test_every_name_in_a_design_page_exists(page: Path) -> None:
    words = re.findall(
        r"`([^`\n]+)`", re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    )
    folders = [ROOT, PACKAGE, PACKAGE / page.stem]
    files = {name for word in words for name in _FILE.findall(word)}
    assert [name for name in files if not any((folder / name).exists() for folder in folders)] == []
    names = {name for word in words if (found := _NAME.fullmatch(word)) for name in found.groups() if name}
    assert names - DEFINED - set(dir(builtins)) == set()


def test_every_test_that_a_page_names_exists() -> None:
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8"))}
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert named
    assert named - set(re.findall(r"def (test_\w+)", tests)) == set()
