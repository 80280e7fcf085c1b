"""A browser for the tests of one worker. It lives in a thread with its own event loop, so that it is started once."""

import asyncio
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from tests.web import browser as chromium

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

WAIT_MS = 60_000
VISIT_SECONDS = 3_600
"""Longer than any test may take; the limit of the test itself is shorter."""
Result = TypeVar("Result")


class BrowserThread:
    """Runs what a test does with a page."""

    def __init__(self) -> None:
        self._program = chromium.program()
        self._temporary = tempfile.TemporaryDirectory(prefix="holdfast-browser-", ignore_cleanup_errors=True)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="browser", daemon=True)
        self._thread.start()
        self._browser: Browser | None = None
        self._playwright: Any = None  # Any: the driver is imported lazily
        # The first page waits for it: a server and its home are made meanwhile.
        self._started = asyncio.run_coroutine_threadsafe(self._start(), self._loop)

    def close(self) -> None:
        """End the browser and the thread."""
        self._started.result(timeout=VISIT_SECONDS)
        self.wait(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._temporary.cleanup()

    def visit(
        self,
        url: str,
        work: "Callable[[Page], Awaitable[Result]]",
        *,
        token: str | None = None,
        allows: tuple[str, ...] = (),
        **context: Any,  # Any: the options of a browser context
    ) -> Result:
        """Open a page in a fresh profile and work with it. Fails on console errors and on requests to other hosts."""
        with self.open(url, token=token, allows=allows, **context) as opened:
            return opened.work(work)

    @contextmanager
    def open(
        self,
        url: str,
        *,
        token: str | None = None,
        allows: tuple[str, ...] = (),
        **context: Any,  # Any: the options of a browser context
    ) -> "Iterator[OpenedPage]":
        """Open a page in a fresh profile for several tests that only look: a profile and its first page take most of their time."""
        opened: OpenedPage = self.wait(self._open(url, token, allows, context))
        try:
            yield opened
        finally:
            self.wait(opened.page.context.close())
        opened.check()

    async def _start(self) -> None:
        from playwright.async_api import async_playwright

        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(
            executable_path=self._program,
            env={**chromium.environment(), "TMPDIR": self._temporary.name},
            chromium_sandbox=False,
            args=["--no-zygote", "--disable-dev-shm-usage", "--disable-gpu"],
            timeout=120_000,
        )

    async def _stop(self) -> None:
        if self._browser is not None:
            await self._browser.close()
        await self._playwright.stop()

    async def _open(
        self, url: str, token: str | None, allows: tuple[str, ...], options: dict[str, Any]
    ) -> "OpenedPage":
        await asyncio.wrap_future(self._started)
        assert self._browser is not None
        found: list[str] = []
        context = await self._browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        try:
            context.set_default_timeout(WAIT_MS)
            if token is not None:
                keep = f"localStorage.setItem('holdfast.token', '{token}')"
                await context.add_init_script(f"if (location.protocol === 'http:') {keep}")
            origin = url.partition("/#")[0].rstrip("/")
            context.on(
                "request", lambda each: found.append(each.url) if not _is_own(each.url, origin) else None
            )
            context.on(
                "console", lambda each: found.append(each.text) if each.type in ("error", "warning") else None
            )
            context.on("weberror", lambda each: found.append(str(each.error)))
            page = await context.new_page()
            await page.goto(url)
        except BaseException:
            await context.close()
            raise
        return OpenedPage(self, page, found, allows)

    def wait(self, work: "Any") -> Any:  # Any: a coroutine of any result
        """The result of what runs in the thread."""
        future: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(timeout=VISIT_SECONDS)


class OpenedPage:
    """A page with all that it reported so far."""

    def __init__(
        self, thread: BrowserThread, page: "Page", found: list[str], allows: tuple[str, ...]
    ) -> None:
        self.page = page
        self._thread = thread
        self._found = found
        self._allows = allows

    def work(self, work: "Callable[[Page], Awaitable[Result]]") -> Result:
        """Work with the page. Fails on console errors and on requests to other hosts."""
        result: Result = self._thread.wait(work(self.page))
        self.check()
        return result

    def check(self) -> None:
        """Fail if the page reported an error, or reached for another host."""
        unexpected = [each for each in self._found if not any(part in each for part in self._allows)]
        assert unexpected == [], f"the page reported an error, or reached for another host: {unexpected}"


GO = """(address) => new Promise((done) => {
  const shown = () => document.querySelector("main:not([data-is-left])");
  const wait = (then) => { if (shown()) then(); else requestAnimationFrame(() => wait(then)); };
  wait(() => {
    if ((location.hash || "#/") === address) { done(); return; }
    shown().dataset.isLeft = "";
    location.hash = address;
    wait(done);
  });
})"""


async def go(page: "Page", address: str) -> None:
    """Go to another page of ours, such as `#/usage`, until the last one is gone. It takes a tenth of what a load takes."""
    await page.evaluate(GO, address)


def _is_own(url: str, origin: str) -> bool:
    return url.startswith((origin, "blob:", "data:"))
