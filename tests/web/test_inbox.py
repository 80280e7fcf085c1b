"""The inbox in a real browser, with real processes: approve there what a terminal asks, and the other way round."""

import asyncio
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.terminals import DELETE, prepared, terminal
from tests.cli.test_approvals import QUESTION, press
from tests.support.fork_server import forked_python
from tests.test_guide_programs import programs
from tests.web.browser_thread import BrowserThread
from tests.web.conftest import running_server
from tests.web.http import send
from tests.web.sample_home import fill

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.timeout(600)
"""A browser on a slow machine takes its time."""

APPROVE = "Hold to approve once"
QUIET_MS, HOLD_MS, SEEN_MS = 320, 600, 3000
"""A press counts after a pause of 300 ms, and as held after 500 ms."""


async def hold(
    page: "Page", name: str, *, within: "Locator | None" = None, until: "Locator | None" = None, key: str = ""
) -> None:
    """Press a button as a person does who means it, after a pause and for a while; again where the page did not take it.

    It is done when the button is gone, or when something else is there.
    """
    button = (within or page).get_by_role("button", name=name, exact=True)
    await button.wait_for()
    for _ in range(100):
        await page.wait_for_timeout(QUIET_MS)
        if await (button.count() if until is None else until.count()) == (until is not None):
            return
        with suppress(Exception):  # it went away in this moment
            await (button.focus(timeout=SEEN_MS) if key else button.hover(timeout=SEEN_MS))
            await (page.keyboard.down(key) if key else page.mouse.down())
            try:
                if not await button.evaluate("(it) => it.classList.contains('holding')", timeout=SEEN_MS):
                    continue
                await page.wait_for_timeout(HOLD_MS)
            finally:
                await (page.keyboard.up(key) if key else page.mouse.up())
            await (until or button).wait_for(state="visible" if until else "detached", timeout=SEEN_MS)
            return
    raise AssertionError(f"{name!r} was held and nothing happened")


def test_a_call_that_a_terminal_asks_is_approved_in_the_browser(
    tmp_path: Path, browser: BrowserThread
) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    with running_server(tmp_path) as server, terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help")

        async def approve(page: "Page") -> None:
            await page.get_by_text("Nothing waits for you").wait_for()
            user.type("remove it\r")
            assert user.wait_for(QUESTION)
            await page.get_by_role("heading", name="The agent wants to delete").wait_for()
            await page.get_by_text("deleting is yours to decide").wait_for()
            await hold(page, APPROVE)
            await page.get_by_text("approved by person, web").wait_for()

        browser.visit(server.url, approve, token=server.token)
        assert user.wait_for("approved (once), by web")
        assert user.wait_for("Gone.")
        assert not (tmp_path / "work" / "a.txt").exists()


def test_an_answer_at_the_terminal_settles_the_card(tmp_path: Path, browser: BrowserThread) -> None:
    words = prepared(tmp_path, DELETE, "Kept.")
    with running_server(tmp_path) as server, terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("remove it\r")
        assert user.wait_for(QUESTION)

        async def see(page: "Page") -> None:
            await page.get_by_role("button", name=APPROVE).wait_for()
            await page.get_by_role("article").hover()  # while the pointer is there, the place stays taken
            press(user, "n", "by terminal")
            await page.get_by_text("denied by person, terminal").wait_for()
            await page.mouse.move(2, 2)
            await page.get_by_text("Nothing waits for you").wait_for()

        browser.visit(server.url, see, token=server.token)
        assert (tmp_path / "work" / "a.txt").exists()


def test_a_link_lets_one_browser_in_once(tmp_path: Path, browser: BrowserThread) -> None:
    with running_server(tmp_path, enters=False) as server:

        async def look(page: "Page") -> str:
            await page.get_by_role("heading", name="Inbox").wait_for()
            return page.url

        assert browser.visit(server.link, look) == f"{server.url}#/"

        async def refused(page: "Page") -> None:
            await page.get_by_text("this link was used, is too old, or is wrong").wait_for()

        browser.visit(server.link, refused, allows=("400 (Bad Request)",))
        assert send(server.url, "GET", "/api/waiting").status == 401


def test_the_program_of_the_guide_denies_what_waits(tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path / "holdfast", waiting=("target.txt",)))
    program = tmp_path / "deny.py"
    program.write_text(programs("web.md")[0])
    with running_server(tmp_path, enters=False) as server:
        printed = subprocess.run(
            forked_python(str(program), server.link), capture_output=True, text=True, check=True, timeout=120
        ).stdout
    assert "target.txt -> recorded" in printed
