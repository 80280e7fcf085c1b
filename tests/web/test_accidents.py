"""Accidents: random keys and clicks around a waiting call approve nothing, fast and slow."""

import asyncio
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.web.browser_thread import BrowserThread
from tests.web.conftest import running_server
from tests.web.http import send
from tests.web.sample_home import fill

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.timeout(600)
"""A browser on a slow machine takes its time."""

KEYS = [
    *"abcdefghijklmnopqrstuvwxyzY123 ",
    "Enter",
    "Enter",
    " ",
    " ",
    "Tab",
    "Tab",
    "Escape",
    "ArrowDown",
    "Shift+Tab",
]


async def storm(page: "Page", number: int, *, seed: int, gap_ms: int) -> int:
    """Press keys and click at random, a third of the clicks on the button that approves; returns how many."""
    chance = random.Random(seed)
    button = page.get_by_role("button", name="Hold to approve once", exact=True)
    await button.wait_for()
    if gap_ms:
        await page.clock.install()
    done = 0
    while done < number:
        done += 1
        kind = chance.random()
        if kind < 0.6:
            await page.keyboard.press(chance.choice(KEYS))
        elif kind < 0.8:
            box = await button.bounding_box()
            if box is not None:
                await page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, delay=0)
        else:
            await page.mouse.click(chance.randrange(300, 900), chance.randrange(200, 780))
        if gap_ms:
            await page.clock.run_for(chance.randrange(gap_ms // 2, gap_ms * 2))
        if "#/" in page.url and not page.url.endswith("#/"):
            await page.evaluate("() => { location.hash = '#/'; }")
            await button.wait_for()
    return done


async def _no_answers(page: "Page") -> None:
    """Count, and stop, what the page would send as an approval."""
    await page.route("**/api/waiting/*/*", _refuse)


async def _refuse(route: "object") -> None:
    request = route.request  # type: ignore[attr-defined]
    if '"approve"' in (request.post_data or ""):
        APPROVED.append(request.post_data)
    await route.fulfill(status=400, json={"code": "test", "text": "not in this test", "hint": ""})  # type: ignore[attr-defined]


APPROVED: list[str] = []


def weather(tmp_path: Path, browser: BrowserThread, number: int, gap_ms: int, seed: int) -> None:
    APPROVED.clear()
    asyncio.run(fill(tmp_path / "holdfast", waiting=("target.txt",)))
    with running_server(tmp_path) as server:

        async def work(page: "Page") -> int:
            await _no_answers(page)
            return await storm(page, number, seed=seed, gap_ms=gap_ms)

        assert browser.visit(server.url, work, token=server.token, allows=("400",)) >= number
        assert APPROVED == []
        assert len(send(server.url, "GET", "/api/waiting", token=server.token).data) == 1


@pytest.mark.parametrize("gap_ms", [0, 100, 600, 1500])
def test_random_keys_and_clicks_approve_nothing(tmp_path: Path, browser: BrowserThread, gap_ms: int) -> None:
    weather(tmp_path, browser, 150, gap_ms, seed=gap_ms + 1)


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("gap_ms", [0, 100, 600, 1500])
def test_twenty_five_thousand_random_keys_and_clicks_approve_nothing(
    tmp_path: Path, browser: BrowserThread, gap_ms: int
) -> None:
    weather(tmp_path, browser, 25_000, gap_ms, seed=gap_ms + 7)
