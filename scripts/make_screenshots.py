"""Make the screenshots of the web page: a sample home, a real server and a real browser. `make screenshots` runs it.

python scripts/make_screenshots.py FOLDER [PAGE ...]
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.web.browser_thread import BrowserThread
from tests.web.conftest import running_server
from tests.web.sample_home import fill
from tests.web.test_pages import PAGES

if TYPE_CHECKING:
    from playwright.async_api import Page


def main(folder: Path, only: list[str]) -> None:
    """Write one picture for each page, scheme and width."""
    folder.mkdir(parents=True, exist_ok=True)
    browser = BrowserThread()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="holdfast-screenshots-") as home,
            running_server(Path(home)) as server,
        ):
            sample = asyncio.run(fill(Path(home, "holdfast")))
            for name, (address, words) in PAGES.items():
                if only and name not in only:
                    continue
                for scheme, width in (("light", 1280), ("dark", 1280), ("light", 320)):

                    async def shoot(
                        page: "Page", path: Path, words: str = words, is_whole: bool = width < 1000
                    ) -> None:
                        await page.get_by_text(words).first.wait_for()
                        await page.wait_for_timeout(900)
                        await page.screenshot(path=path, full_page=is_whole)

                    path = folder / f"{name}-{scheme}-{width}.png"
                    browser.visit(
                        server.url + address.format(session=sample.talk, staged=sample.staged),
                        lambda page, path=path: shoot(page, path),  # type: ignore[misc]
                        token=server.token,
                        color_scheme=scheme,
                        viewport={"width": width, "height": 800},
                    )
    finally:
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
