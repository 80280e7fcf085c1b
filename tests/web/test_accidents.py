"""Accidents: random keys and clicks around a waiting call approve nothing, fast and slow."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest
from tests.web.browser_thread import BrowserThread, Result
from tests.web.conftest import WebServer
from tests.web.http import send
from tests.web.sample_home import fill

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.timeout(600)
"""A browser on a slow machine takes its time."""

KEYS = [*"abcdefghijklmnopqrstuvwxyzY123", " ", " ", "Enter", "Enter", "Tab", "Tab", "Escape", "ArrowDown"]
BURST = 50
PRESSED_SECONDS = 0.05
GAPS_MS = (100, 600, 1500)
APPROVE = "Hold to approve once"
COUNT = """() => { window.reached = 0; for (const kind of ["keydown", "mousedown"]) addEventListener(kind, () => { window.reached++; }, { capture: true }); }"""
BACK = """() => {
  if (location.hash !== "#/") { location.hash = "#/"; return null; }
  const box = [...document.querySelectorAll("button.yes")].find((each) => each.textContent === "Hold to approve once")?.getBoundingClientRect();
  return box ? [box.x + box.width / 2, box.y + box.height / 2] : null;
}"""
"""Back to the inbox; the middle of the button that approves, if it is there."""


async def storm(page: "Page", number: int, *, seed: int, is_slow: bool) -> int:
    """Press keys and click at random, a third of the clicks on the button that approves. Gives how many reached the page.

    The input goes to the browser as the operating system would give it, many at once. Where it is slow, the clock of the
    page stands still and is moved by hand, so that every key and click, and the time between two of them, are a person's.
    """
    chance = random.Random(seed)
    button = page.get_by_role("button", name=APPROVE, exact=True)
    await button.wait_for()
    await page.evaluate(COUNT)
    browser = await page.context.new_cdp_session(page)
    done = 0
    while done < number:
        middle = await page.evaluate(BACK)
        if middle is None:  # the storm went to another page
            await button.wait_for()
            continue
        burst = [random_input(chance, middle) for _ in range(1 if is_slow else min(BURST, number - done))]
        if is_slow:
            [[*pressed, released]] = burst
            await asyncio.gather(*(browser.send(*each) for each in pressed))
            await page.clock.run_for(chance.randrange(20, 250))
            await browser.send(*released)
            gap_ms = chance.choice(GAPS_MS)
            await page.clock.run_for(chance.randrange(gap_ms // 2, gap_ms * 2))
        else:
            await asyncio.gather(*(browser.send(*each) for one in burst for each in stamped(one)))
        done += len(burst)
    assert await page.evaluate("() => document.hasFocus()")
    return int(await page.evaluate("() => window.reached"))


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


def stamped(
    parts: list[tuple[str, dict[str, str | float]]],
) -> list[tuple[str, dict[str, str | float]]]:
    """The same with the times at which it was made: a machine that is slow between two parts does not make a click a hold."""
    now = time.time()
    last = len(parts) - 1
    return [
        (method, given | {"timestamp": now - PRESSED_SECONDS * (place < last)})
        for place, (method, given) in enumerate(parts)
    ]


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
SENT = "() => fetch('/api/done', { method: 'POST' }).then(() => null)"
"""Comes after what the page has sent."""


def weather(
    server: WebServer, browser: BrowserThread, number: int, *, seed: int, is_slow: bool, pages: int = 1
) -> None:
    """So many inputs, over some pages at once."""

    async def work(page: "Page") -> int:
        others = [await page.context.new_page() for _ in range(pages - 1)]
        for other in others:
            await _no_answers(other)
            await other.goto(page.url)
        if is_slow:  # the pages of a context share its clock, so there is one
            await page.clock.install()
            await page.clock.pause_at(time.time() + 60)
        counts = await asyncio.gather(
            *(
                storm(each, number // pages, seed=seed + 10_000 * place, is_slow=is_slow)
                for place, each in enumerate((page, *others))
            )
        )
        return sum(counts)

    reached = waiting_page(server, browser, work)
    print(f"{reached} of {number} inputs reached the page, {len(APPROVED)} approvals")
    # The list of a field takes some of them, as on a real screen.
    assert reached >= 0.9 * number
    assert APPROVED == []


@pytest.fixture(scope="module")
def target(server: WebServer) -> WebServer:
    """A server with one call that waits. No test of the module lets an answer through."""
    asyncio.run(fill(server.home / "holdfast", waiting=("target.txt",)))
    return server


def waiting_page(
    server: WebServer, browser: BrowserThread, work: "Callable[[Page], Awaitable[Result]]"
) -> "Result":
    """Work with the inbox while one call waits. What the page would approve is kept from the server and counted."""
    APPROVED.clear()

    async def ready(page: "Page") -> "Result":
        await _no_answers(page)
        await page.get_by_role("button", name=APPROVE, exact=True, disabled=False).wait_for()
        return await work(page)

    done = browser.visit(f"{server.url}#/", ready, token=server.token, allows=("400",))
    assert len(send(server.url, "GET", "/api/waiting", token=server.token).data) == 1
    return done


BUSY = """() => {
  addEventListener("mousedown", () => { const began = performance.now(); while (performance.now() - began < 2000); }, { once: true });
  addEventListener("pointerup", (event) => { window.lateMs = performance.now() - event.timeStamp; }, { capture: true });
}"""
"""The page gets busy with the press, which began before it, and sees the release when it is done."""


def test_a_click_that_a_busy_page_sees_late_is_not_a_hold(target: WebServer, browser: BrowserThread) -> None:
    """The page is busy between press and release: what counts is how long the button was pressed, not how long it took."""

    async def click(page: "Page") -> float:
        devtools = await page.context.new_cdp_session(page)
        await page.evaluate(BUSY)
        await page.wait_for_timeout(1_000)
        x, y = await page.evaluate(BACK)
        at: dict[str, str | float] = {"x": x, "y": y, "button": "left", "clickCount": 1}
        # Together: the release is made while the page is busy.
        await asyncio.gather(
            devtools.send("Input.dispatchMouseEvent", at | {"type": "mousePressed"}),
            devtools.send("Input.dispatchMouseEvent", at | {"type": "mouseReleased"}),
        )
        await page.evaluate(SENT)
        return float(await page.evaluate("() => window.lateMs"))

    late_ms = waiting_page(target, browser, click)
    assert late_ms > 600, "the page saw the release when it would have been a hold"
    assert APPROVED == []


def test_a_press_counts_only_while_the_page_is_awake(target: WebServer, browser: BrowserThread) -> None:
    """A clock that jumps while the button is pressed, as when a laptop sleeps, does not make a click a hold."""
    approvals: dict[str, int] = {}

    async def press(page: "Page") -> None:
        await page.clock.install()
        await page.clock.pause_at(time.time() + 60)

        async def approve(name: str, *parts: Awaitable[object]) -> None:
            await page.clock.run_for(1_000)
            APPROVED.clear()
            await page.mouse.move(*await page.evaluate(BACK))
            await page.mouse.down()
            for part in parts:
                await part
            await page.mouse.up()
            await page.evaluate(SENT)
            approvals[name] = len(APPROVED)

        clock = page.clock
        await approve("clicked", clock.run_for(120))
        await approve("asleep", clock.run_for(120), clock.fast_forward(1_000), clock.run_for(120))
        await approve("too long", clock.run_for(3_200))
        await approve("held", clock.run_for(700))
        lost = "() => { document.hasFocus = () => false; }"
        await approve("elsewhere", clock.run_for(300), page.evaluate(lost), clock.run_for(400))

    waiting_page(target, browser, press)
    assert approvals == {"clicked": 0, "asleep": 0, "too long": 0, "held": 1, "elsewhere": 0}


@pytest.mark.parametrize(("number", "is_slow"), [(5_400, False), (600, True)])
def test_six_thousand_random_keys_and_clicks_approve_nothing(
    target: WebServer, browser: BrowserThread, number: int, is_slow: bool
) -> None:
    weather(target, browser, number, seed=1, is_slow=is_slow)


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    ("number", "is_slow", "seed"),
    [(42_500, False, 2), (42_500, False, 3), (5_000, True, 4), (5_000, True, 5), (5_000, True, 6)],
)
def test_a_hundred_thousand_random_keys_and_clicks_approve_nothing(
    target: WebServer, browser: BrowserThread, number: int, is_slow: bool, seed: int
) -> None:
    weather(target, browser, number, seed=seed, is_slow=is_slow, pages=1 if is_slow else 4)
