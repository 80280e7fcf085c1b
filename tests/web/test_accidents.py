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

KEYS = [*"abcdefghijklmnopqrstuvwxyzY123", " ", " ", "Enter", "Enter", "Tab", "Tab", "Escape", "ArrowDown"]
BURST = 50


BACK = """() => {
  if (location.hash !== "#/") { location.hash = "#/"; return null; }
  const box = [...document.querySelectorAll("button.yes")].find((each) => each.textContent === "Hold to approve once")?.getBoundingClientRect();
  return box ? [box.x + box.width / 2, box.y + box.height / 2] : null;
}"""
"""Back to the inbox; the middle of the button that approves, if it is there."""


async def storm(page: "Page", number: int, *, seed: int, gap_ms: int) -> None:
    """Press keys and click at random, a third of the clicks on the button that approves.

    The input goes to the browser as the operating system would give it, many at once where there is no gap.
    """
    chance = random.Random(seed)
    button = page.get_by_role("button", name="Hold to approve once", exact=True)
    await button.wait_for()
    browser = await page.context.new_cdp_session(page)
    done = 0
    while done < number:
        middle = await page.evaluate(BACK)
        if middle is None:  # the storm went to another page
            await button.wait_for()
            continue
        burst = [random_input(chance, middle) for _ in range(1 if gap_ms else min(BURST, number - done))]
        await asyncio.gather(*(browser.send(name, given) for each in burst for name, given in each))
        done += len(burst)
        if gap_ms:
            await page.clock.run_for(chance.randrange(gap_ms // 2, gap_ms * 2))


def random_input(
    chance: random.Random, middle: tuple[float, float]
) -> list[tuple[str, dict[str, str | float]]]:
    """One key or click: pressed and released."""
    if chance.random() < 0.6:
        key = chance.choice(KEYS)
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        given: dict[str, str | float] = {"key": key, "code": "Space" if key == " " else key}
        given |= {"windowsVirtualKeyCode": CODES.get(key, ord(key[0].upper()))}
        down = given | ({"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"})
        return [("Input.dispatchKeyEvent", down), ("Input.dispatchKeyEvent", given | {"type": "keyUp"})]
    is_aimed = chance.random() < 0.5
    x, y = middle if is_aimed else (chance.randrange(300, 900), chance.randrange(200, 780))
    at: dict[str, str | float] = {"x": x, "y": y, "button": "left", "clickCount": 1}
    kinds = ("mouseMoved", "mousePressed", "mouseReleased")
    return [("Input.dispatchMouseEvent", at | {"type": kind}) for kind in kinds]


CODES = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, " ": 32}


async def _no_answers(page: "Page") -> None:
    """Stop everything that the page would do, such as ending the turn that waits, and count the approvals."""
    await page.route(lambda url: "/api/" in url, _refuse)


async def _refuse(route: "object") -> None:
    request = route.request  # type: ignore[attr-defined]
    if request.method == "GET":
        await route.continue_()  # type: ignore[attr-defined]
        return
    if '"approve"' in (request.post_data or ""):
        APPROVED.append(request.post_data)
    await route.fulfill(status=400, json={"code": "test", "text": "not in this test", "hint": ""})  # type: ignore[attr-defined]


APPROVED: list[str] = []


def weather(tmp_path: Path, browser: BrowserThread, counts: dict[int, int], seed: int) -> None:
    """Storms with these numbers of inputs, by the gap between two of them in milliseconds."""
    APPROVED.clear()
    asyncio.run(fill(tmp_path / "holdfast", waiting=("target.txt",)))
    with running_server(tmp_path) as server:

        async def work(page: "Page") -> None:
            await _no_answers(page)
            for gap_ms, number in sorted(counts.items()):
                if gap_ms:
                    await page.clock.install()
                await storm(page, number, seed=seed + gap_ms, gap_ms=gap_ms)
            # Proof that the storm reached the page: something in it was typed or opened.
            assert await page.evaluate("() => document.hasFocus()")

        browser.visit(server.url, work, token=server.token, allows=("400",))
        assert APPROVED == []
        assert len(send(server.url, "GET", "/api/waiting", token=server.token).data) == 1


@pytest.mark.timeout(1800)
def test_six_thousand_random_keys_and_clicks_approve_nothing(tmp_path: Path, browser: BrowserThread) -> None:
    weather(tmp_path, browser, {0: 5_400, 100: 200, 600: 200, 1500: 200}, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_a_hundred_thousand_random_keys_and_clicks_approve_nothing(
    tmp_path: Path, browser: BrowserThread
) -> None:
    weather(tmp_path, browser, {0: 85_000, 100: 5_000, 600: 5_000, 1500: 5_000}, seed=7)
