"""Staged changes in a real browser: side by side, decided hunk by hunk, committed by holding a button."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.web.browser_thread import BrowserThread, OpenedPage, go
from tests.web.conftest import WebServer
from tests.web.test_inbox import hold

from holdfast.app import Runtime
from holdfast.session import Settings

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.timeout(600)
"""A browser on a slow machine takes its time."""

LINES = [f"line {number}\n" for number in range(40)]


async def stage(home: Path, folder: Path) -> str:
    """A session that changed the first and the last line of a file and added one between them."""
    (folder / "a.txt").write_text("".join(LINES))
    changed = "".join(["first\n", *LINES[1:20], "new\n", *LINES[20:-1], "last\n"])
    runtime = await Runtime.start(home=home, settings=Settings(), servers=())
    try:
        session = await runtime.create(workspace=folder, policy="project", needs_model=False)
        await session.execute(f"open('a.txt', 'w').write({changed!r})")
        return session.id
    finally:
        await runtime.close()


def test_one_hunk_is_committed_one_dropped_and_one_stays(
    server: WebServer, tab: OpenedPage, tmp_path: Path
) -> None:
    session = asyncio.run(stage(server.home / "holdfast", tmp_path))

    async def decide(page: "Page") -> None:
        await go(page, f"#/s/{session}/changes")
        await page.get_by_label("Side by side").check()
        row = page.locator(".split tr").filter(has_text="first")
        assert await row.locator("td").all_inner_texts() == ["line 0", "first"]
        # What was added stays on its side, also on a phone.
        await page.set_viewport_size({"width": 320, "height": 800})
        added = page.locator(".split tr").filter(has_text="new").locator("td")
        places = [await added.nth(side).bounding_box() for side in (0, 1)]
        assert places[0] is not None
        assert places[1] is not None
        assert places[0]["x"] + places[0]["width"] <= places[1]["x"] + 1
        await page.set_viewport_size({"width": 1280, "height": 800})
        await page.get_by_role("button", name="Accept hunk 1 of a.txt").click()
        await page.get_by_role("button", name="Hold to commit 1 hunk", exact=True).wait_for()
        await page.get_by_role("button", name="Reject hunk 3 of a.txt").click()
        await hold(page, "Hold to commit 1 hunk and drop 1 hunk")
        await page.get_by_text("+1 −0").wait_for()

    tab.work(decide)
    assert (tmp_path / "a.txt").read_text() == "".join(["first\n", *LINES[1:]])


def test_what_changes_while_the_button_is_held_is_not_committed(
    server: WebServer, browser: BrowserThread, tmp_path: Path
) -> None:
    session = asyncio.run(stage(server.home / "holdfast", tmp_path))

    async def change(text: str) -> None:
        runtime = await Runtime.start(home=server.home / "holdfast", settings=Settings(), servers=())
        try:
            await (await runtime.resume(session, needs_model=False)).execute(
                f"open('a.txt', 'w').write({text!r})"
            )
        finally:
            await runtime.close()

    async def commit(page: "Page") -> None:
        button = page.get_by_role("button", name="Hold to commit 1 file")
        await button.wait_for()
        await page.clock.install()
        await page.clock.pause_at(time.time() + 60)
        await page.clock.run_for(1_000)
        await button.hover()
        await page.mouse.down()
        await change("unseen")
        await page.locator(".diff .add").filter(has_text="unseen").wait_for()
        await page.clock.run_for(700)
        await page.mouse.up()
        await page.get_by_text("not the ones that you were shown").wait_for()
        assert (tmp_path / "a.txt").read_text() == "".join(LINES)

        await page.clock.run_for(1_000)
        await change("as new as it gets")
        await page.locator(".diff .add").filter(has_text="as new as it gets").wait_for()
        for expected in ("".join(LINES), "as new as it gets"):
            await page.clock.run_for(100)
            await button.hover()
            await page.mouse.down()
            await page.clock.run_for(700)
            await page.mouse.up()
            await page.clock.run_for(900)
            if expected != "".join(LINES):
                await page.get_by_text("Nothing is staged").wait_for()
            assert (tmp_path / "a.txt").read_text() == expected

    browser.visit(f"{server.url}#/s/{session}/changes", commit, token=server.token, allows=("409",))
