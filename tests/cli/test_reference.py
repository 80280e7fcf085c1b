"""The reference pages are generated from the code and up to date."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent


def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "scripts" / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["commands.md", "config.md", "events.md", "errors.md", "exit-codes.md"])
def test_a_reference_page_matches_the_code(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    written = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert written == reference().PAGES[page](), "stale: python scripts/make_reference.py"
