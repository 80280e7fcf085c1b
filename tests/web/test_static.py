"""The files of the page: no way to make HTML from text, nothing from other hosts, small, and as they are on record."""

import hashlib
import re
from importlib import resources
from pathlib import Path

from holdfast.core.approval_text import SAVED_LENGTHS, SAVED_MINUTES

STATIC = Path(str(resources.files("holdfast.web") / "static"))
OWN = [path for path in sorted(STATIC.rglob("*")) if path.is_file() and "vendor" not in path.parts]
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc|"
    r"dangerouslySetInnerHTML|document\.cookie|https?://"
)
NAMESPACE = "http://www.w3.org/2000/svg"


def test_no_file_of_the_page_makes_html_from_text_or_names_another_host() -> None:
    found = {path.name: FORBIDDEN.findall(path.read_text().replace(NAMESPACE, "")) for path in OWN}
    assert {name: hits for name, hits in found.items() if hits} == {}
    assert len(OWN) > 10


def test_the_page_has_no_inline_script_or_style() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)


def test_the_page_asks_for_all_its_modules_at_once() -> None:
    """Otherwise the browser finds them one after another, import by import."""
    named = re.findall(
        r'(?:modulepreload" href|module" src)="/static/([^"]+)"', (STATIC / "index.html").read_text()
    )
    assert sorted(named) == sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js"))


def test_the_page_is_small() -> None:
    sizes = {path.name: path.stat().st_size for path in STATIC.rglob("*") if path.suffix in (".js", ".css")}
    assert sum(sizes.values()) <= 120_000, sizes
    assert max(sizes.values()) <= 60_000


def test_the_lengths_of_an_approval_are_those_of_the_terminal() -> None:
    [found] = re.findall(
        r"const LENGTHS = \{(.*?)\}, MINUTES = (\d+);", (STATIC / "pages" / "inbox.js").read_text()
    )
    assert dict(re.findall(r'(\w+): "([^"]+)"', found[0])) == SAVED_LENGTHS
    assert int(found[1]) == SAVED_MINUTES


def test_the_vendored_library_is_the_one_on_record() -> None:
    record = (STATIC / "vendor" / "README.md").read_text()
    digest = hashlib.sha256((STATIC / "vendor" / "preact.js").read_bytes()).hexdigest()
    assert f"`{digest}`" in record
    for name in ("preact", "@preact/signals-core", "htm"):
        assert re.search(rf"\| {name} \| [0-9.]+ \| `sha512-[A-Za-z0-9+/=]+` \| \w+", record), name
    licences = (STATIC / "vendor" / "LICENSES.txt").read_text()
    assert "The MIT License" in licences
    assert "Apache License" in licences
