"""Make the screenshots of the web page: a sample home and an empty one, a real server and a real browser. `make screenshots` runs it.

python scripts/make_screenshots.py FOLDER [PAGE ...]

Each page is there in light and dark, for a desk and for a phone; `first-` is what a new home shows, and `picture` the one of the README.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.web.browser_thread import BrowserThread
from tests.web.conftest import WebServer, running_server
from tests.web.sample_home import SampleHome, fill
from tests.web.test_pages import PAGES

from holdfast.app import Runtime
from holdfast.models import ScriptedModel, use
from holdfast.session import Settings

if TYPE_CHECKING:
    from playwright.async_api import Page

VIEWS = (("light", 1280), ("light", 320), ("dark", 320), ("dark", 1280))
SETTLED_MS = 900
"""A card can be answered when it has stood still for a moment."""


def main(folder: Path, only: list[str]) -> None:
    """Write one picture for each page, scheme and width."""
    folder.mkdir(parents=True, exist_ok=True)
    browser = BrowserThread()
    try:
        if only == ["picture"]:
            take_picture(browser, folder / "inbox.png")
            return
        with tempfile.TemporaryDirectory(prefix="holdfast-") as home, running_server(Path(home)) as server:
            sample = asyncio.run(fill(Path(home, "holdfast")))
            for name in only or PAGES:
                if not name.startswith("first-"):
                    shoot(browser, server, folder / name, *place(name, sample))
        with tempfile.TemporaryDirectory(prefix="holdfast-") as home, running_server(Path(home)) as server:
            for name, (address, _) in PAGES.items():
                if "{" not in address and (not only or f"first-{name}" in only):
                    shoot(browser, server, folder / f"first-{name}", address, "")
    finally:
        browser.close()


def take_picture(browser: BrowserThread, file: Path) -> None:
    """The inbox with two calls that wait, as a person would meet them."""
    with tempfile.TemporaryDirectory(prefix="holdfast-") as home, running_server(Path(home)) as server:
        asyncio.run(_ask(Path(home)))

        async def take(page: "Page") -> None:
            await page.get_by_role("button", name="Hold to approve once").nth(1).wait_for()
            await page.wait_for_timeout(SETTLED_MS)
            await page.screenshot(path=file)

        browser.visit(server.url, take, token=server.token, viewport={"width": 1000, "height": 720})


async def _ask(home: Path) -> None:
    """Two sessions in a project that wait for a person."""
    shop = home / "shop"
    (shop / "reports").mkdir(parents=True)
    (shop / "reports" / "2024.csv").write_text("month,total\n1,17\n")
    runtime = await Runtime.start(home=home / "holdfast", settings=Settings(), servers=())
    try:
        for name, policy, words, code in (
            (
                "tidy-reports",
                "ask-always",
                "Remove the reports that nobody reads.",
                "import os\nos.remove('reports/2024.csv')",
            ),
            (
                "checks",
                "project",
                "Check the format before every commit.",
                f"open('.pre-commit-config.yaml', 'w').write({HOOKS!r})",
            ),
        ):
            model = ScriptedModel([use("execute_code", {"code": code}), "Done."])
            session = await runtime.create(name=name, workspace=shop, policy=policy, model=model)
            await session.send(words)
    finally:
        await runtime.close()


HOOKS = "repos:\n  - repo: local\n    hooks:\n      - {id: format, name: format, entry: ruff format, language: system}\n"


def place(name: str, sample: SampleHome) -> tuple[str, str]:
    """The address of a page, and words that it shows."""
    address, words = PAGES[name]
    return address.format(session=sample.talk, staged=sample.staged), words


def shoot(browser: BrowserThread, server: WebServer, file: Path, address: str, words: str) -> None:
    """Open a page once and take a picture of each view."""

    async def take(page: "Page") -> None:
        await page.get_by_role("heading", level=1).wait_for()
        await page.get_by_text(words).first.wait_for() if words else await page.wait_for_load_state()
        await page.wait_for_timeout(SETTLED_MS)
        for scheme, width in VIEWS:
            await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            await page.set_viewport_size({"width": width, "height": 800})
            await page.screenshot(
                path=file.with_name(f"{file.name}-{scheme}-{width}.png"), full_page=width < 1000
            )

    browser.visit(server.url + address, take, token=server.token)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
