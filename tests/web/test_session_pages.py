"""Pages of a session in a real browser: what stays in the message box, what went wrong and is said, and who answered a call."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.store.sample_events import opened, said
from tests.web.browser_thread import BrowserThread, OpenedPage, go
from tests.web.conftest import WebServer
from tests.web.sample_home import SampleHome, fill
from tests.web.test_inbox import hold

from holdfast.core import SessionId, SystemClock
from holdfast.store import Home, open_store

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.timeout(600)
"""A browser on a slow machine takes its time."""


@pytest.fixture(scope="module")
def sample(server: WebServer) -> SampleHome:
    """A home with a session that has a denied call, and one with staged changes."""
    return asyncio.run(fill(server.home / "holdfast", waiting=()))


@pytest.fixture(scope="module")
def tab(server: WebServer, browser: BrowserThread) -> Iterator[OpenedPage]:
    """A page whose requests may fail."""
    with browser.open(server.url, token=server.token, allows=("400", "ERR_FAILED")) as opened:
        yield opened


async def refuse(page: "Page", part: str, text: str) -> None:
    """Let the requests to a part of a session fail with these words."""
    body = {"code": "test", "text": text, "hint": "try it again"}
    await page.route(lambda url: url.endswith(part), lambda route: route.fulfill(status=400, json=body))


async def leave(server: WebServer) -> SessionId:
    """A session whose process ended within a turn."""
    store = await open_store(Home(server.home / "holdfast"), clock=SystemClock(), redact=bytes)
    journal = await store.create(opened(name="left-alone"))
    await journal.append(said(1))
    await journal.release()
    await store.close()
    return journal.session


def test_a_session_that_was_left_is_not_called_working_and_stopping_it_keeps_the_draft(
    server: WebServer, sample: SampleHome, tab: OpenedPage
) -> None:
    session = asyncio.run(leave(server))

    async def stop(page: "Page") -> None:
        await go(page, "#/sessions")
        await page.get_by_role("listitem").filter(has_text="left-alone").get_by_text("not running").wait_for()
        await go(page, f"#/s/{session}")
        await page.get_by_text("not running").wait_for()
        box = page.get_by_label("Message to the agent")
        await box.fill("and then the second part")
        await page.get_by_role("button", name="Stop the turn").click()
        await page.get_by_role("status").get_by_text("stopped").wait_for()
        assert await box.input_value() == "and then the second part"
        await page.get_by_text("not running").wait_for(state="detached")
        await go(page, "#/sessions")
        row = page.get_by_role("listitem").filter(has_text="left-alone")
        await row.wait_for()
        assert "not running" not in await row.inner_text()

    tab.work(stop)


def test_a_check_that_failed_shows_its_output_line_by_line(sample: SampleHome, tab: OpenedPage) -> None:
    async def commit(page: "Page") -> str:
        await refuse(page, "/commit", "the check failed:\ntest_a: ok\ntest_b: FAILED")
        await go(page, f"#/s/{sample.staged}/changes")
        await page.get_by_label("Only if this succeeds").fill("pytest -q")
        await page.get_by_role("button", name="Hold to commit 2 files").wait_for()
        await hold(page, "Hold to commit 2 files", until=page.get_by_role("alert"))
        return await page.get_by_role("alert").inner_text()

    assert tab.work(commit).splitlines()[:3] == ["the check failed:", "test_a: ok", "test_b: FAILED"]


def test_an_export_that_fails_says_so(sample: SampleHome, tab: OpenedPage) -> None:
    async def export(page: "Page") -> str:
        await refuse(page, "/audit.csv", "the journal cannot be read")
        await go(page, f"#/s/{sample.talk}/audit")
        await page.get_by_role("button", name="Export CSV").click()
        return await page.get_by_role("alert").inner_text()

    assert tab.work(export).splitlines() == ["the journal cannot be read", "try it again"]


def test_the_audit_names_who_answered_a_call_also_where_it_was_denied(
    sample: SampleHome, tab: OpenedPage
) -> None:
    async def look(page: "Page") -> list[str]:
        await go(page, f"#/s/{sample.talk}/audit")
        row = page.get_by_role("row").filter(has_text="notes.txt")
        await row.get_by_text("denied").first.wait_for()
        heads = await page.get_by_role("columnheader").all_inner_texts()
        cells = await row.get_by_role("cell").all_inner_texts()
        return [f"{head}: {cell}" for head, cell in zip(heads, cells, strict=True) if " by" in head]

    [answered] = tab.work(look)
    assert answered.startswith("Answered by: person")


def test_a_page_that_did_not_reach_the_server_asks_again(sample: SampleHome, tab: OpenedPage) -> None:
    async def lose(page: "Page") -> None:
        await page.route("**/api/usage?*", lambda route: route.abort(), times=1)
        await go(page, "#/usage")
        await page.get_by_role("alert").get_by_text("the server does not answer").wait_for()
        await page.get_by_role("region", name="usage").wait_for()
        assert await page.get_by_role("alert").count() == 0

    tab.work(lose)
