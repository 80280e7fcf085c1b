"""Every page in a real browser: no accessibility violations, in light and dark, wide and narrow; usable by keyboard."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import pytest
from tests.web import browser as chromium
from tests.web.browser_thread import BrowserThread
from tests.web.conftest import WebServer
from tests.web.sample_home import SampleHome, fill

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.timeout(600)
"""A browser on a slow machine takes its time."""

PAGES = {
    "inbox": ("#/", "The agent wants to write"),
    "answered": ("#/answered", "denied"),
    "sessions": ("#/sessions", "tidy-notes"),
    "session": ("#/s/{session}", "I put the list in order"),
    "changes": ("#/s/{staged}/changes", "Hold to commit"),
    "timeline": ("#/s/{session}/timeline", "turn"),
    "audit": ("#/s/{session}/audit", "world.write"),
    "limits": ("#/s/{session}/limits", "Saved approvals"),
    "files": ("#/s/{staged}/files", "report.md"),
    "policy": ("#/policy", "Rules, in the order"),
    "teams": ("#/teams", "Messages a session"),
    "usage": ("#/usage", "total"),
    "devices": ("#/devices", "this one"),
    "doctor": ("#/doctor", "versions"),
}
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="module")
def sample(server: WebServer) -> SampleHome:
    """A home with sessions in every state."""
    return asyncio.run(fill(server.home / "holdfast"))


def place(sample: SampleHome, name: str) -> tuple[str, str]:
    address, words = PAGES[name]
    return address.format(session=sample.talk, staged=sample.staged), words


async def violations(page: "Page") -> list[str]:
    """What axe finds on the page, in one line each."""
    await page.evaluate(chromium.AXE.read_text())
    found = await page.evaluate(
        "async (tags) => { const done = await axe.run({ runOnly: tags });"
        " return done.violations.map((each) => each.id + ': ' + each.nodes.map((node) => node.html).join(' | ')); }",
        AXE_RULES,
    )
    return [str(each) for each in found]


View = tuple[Literal["light", "dark"], int]
VIEWS: tuple[View, ...] = (("light", 1280), ("dark", 320))
EVERY_VIEW: tuple[View, ...] = (
    ("light", 320),
    ("light", 640),
    ("light", 1280),
    ("dark", 320),
    ("dark", 640),
    ("dark", 1280),
)
"""640 is what is left of 1280 at a zoom of 200 %."""


def check_page(
    name: str,
    server: WebServer,
    sample: SampleHome,
    browser: BrowserThread,
    views: tuple[View, ...],
) -> None:
    """What axe finds on a page in these colours and widths, and whether it scrolls sideways."""
    address, words = place(sample, name)

    async def check(page: "Page") -> list[str]:
        await page.get_by_text(words).first.wait_for()
        found: list[str] = []
        for scheme, width in views:
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await page.set_viewport_size({"width": width, "height": 800})
            if await page.evaluate("() => document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{scheme} {width}: the page scrolls sideways")
            found += [f"{scheme} {width}: {each}" for each in await violations(page)]
        return found

    assert browser.visit(server.url + address, check, token=server.token, bypass_csp=True) == []


@pytest.mark.parametrize("name", [name for name in PAGES if name != "doctor"])
def test_a_page_has_no_accessibility_violations(
    name: str, server: WebServer, sample: SampleHome, browser: BrowserThread
) -> None:
    check_page(name, server, sample, browser, VIEWS)


@pytest.mark.soak
@pytest.mark.parametrize("name", PAGES)
def test_no_page_has_accessibility_violations_in_any_colour_width_and_zoom(
    name: str, server: WebServer, sample: SampleHome, browser: BrowserThread
) -> None:
    check_page(name, server, sample, browser, EVERY_VIEW)


KEYBOARD_PATH = ("Sessions", "Teams", "Policy", "Usage", "Devices", "Inbox")


def test_every_page_is_reached_by_keyboard(
    server: WebServer, sample: SampleHome, browser: BrowserThread
) -> None:
    async def walk(page: "Page") -> set[str]:
        await page.get_by_role("heading", name="Inbox").wait_for()
        seen: set[str] = set()
        for name in KEYBOARD_PATH:
            for _ in range(60):
                await page.keyboard.press("Tab")
                text = await page.evaluate("() => document.activeElement.textContent")
                if text.startswith(name):
                    break
            await page.keyboard.press("Enter")
            await page.get_by_role("heading", level=1, name=name).wait_for()
            # The new page has the focus, so that a screen reader starts there.
            await page.wait_for_function("() => document.activeElement.id === 'main'")
            seen.add(name)
        return seen

    assert browser.visit(server.url, walk, token=server.token) == set(KEYBOARD_PATH)


def test_a_call_is_approved_by_holding_a_key(
    server: WebServer, sample: SampleHome, browser: BrowserThread
) -> None:
    async def approve(page: "Page") -> None:
        card = page.get_by_role("article").filter(has_text="by-key.txt")
        button = card.get_by_role("button", name="Hold to approve once", exact=True)
        await button.wait_for()
        await card.hover()  # while the pointer is there, the place stays taken
        for _ in range(20):
            await page.wait_for_timeout(800)
            if not await button.count():
                break
            try:
                await button.focus(timeout=3000)
                await page.keyboard.down("Enter")
                await page.wait_for_timeout(900)
                await page.keyboard.up("Enter")
                await button.wait_for(state="detached", timeout=3000)
            except Exception:
                continue
            break
        await page.get_by_text("by-key.txt: approved").wait_for()

    browser.visit(server.url, approve, token=server.token)


def test_a_number_is_typed_where_nobody_can_hold(
    server: WebServer, sample: SampleHome, browser: BrowserThread
) -> None:
    async def approve(page: "Page") -> None:
        await page.evaluate("() => localStorage.setItem('holdfast.approve', 'type')")
        await page.reload()
        card = page.get_by_role("article").filter(has_text="by-number.txt")
        label = await card.locator("label", has_text="to approve once").inner_text()
        await card.get_by_role("textbox").fill("000")
        await card.get_by_role("button", name="Approve once").click(force=True)
        await page.wait_for_timeout(800)
        assert await card.get_by_role("button", name="Approve once").count() == 1
        await card.get_by_role("textbox").fill(label.split()[1])
        for _ in range(20):
            await page.wait_for_timeout(800)
            if not await card.get_by_role("button", name="Approve once").count():
                break
            with suppress(Exception):  # it went away in this moment
                await card.get_by_role("button", name="Approve once").click(timeout=5000)
            await page.wait_for_timeout(800)
        await page.get_by_text("by-number.txt: approved").wait_for()

    browser.visit(server.url, approve, token=server.token)
