"""A phone: it enters by a QR code through a TLS proxy, may answer single calls, and approves by touch on a small screen."""

import asyncio
import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.web.browser_thread import BrowserThread
from tests.web.conftest import running_server
from tests.web.http import send
from tests.web.sample_home import fill
from tests.web.test_inbox import HOLD_MS, QUIET_MS

from holdfast.gate.commands.own_servers import running_servers
from holdfast.store import Home
from holdfast.web.qr_code import qr_code

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.timeout(600)
"""A browser on a slow machine takes its time."""

PHONE: dict[str, Any] = {  # Any: options of a browser context
    "viewport": {"width": 320, "height": 640},
    "has_touch": True,
    "is_mobile": True,
    "ignore_https_errors": True,
}


def certificate(folder: Path) -> Path:
    """A certificate of this machine for one test, with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "proxy.pem"
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


class TlsProxy:
    """A TLS proxy of this machine: it passes bytes on to a port."""

    def __init__(self, folder: Path) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate(folder))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.origin = f"https://127.0.0.1:{self.port}"

    @contextmanager
    def to(self, port: int) -> Iterator[None]:
        """Pass connections on for the duration of the block."""
        loop = asyncio.new_event_loop()
        stop = asyncio.Event()
        thread = threading.Thread(target=loop.run_until_complete, args=(self._serve(port, stop),))
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join()
            loop.close()

    async def _serve(self, port: int, stop: asyncio.Event) -> None:
        passing: set[asyncio.Task[None]] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            passing.add(task)
            try:
                inner, outer = await asyncio.open_connection("127.0.0.1", port)
                with closing(outer), closing(writer):
                    await asyncio.gather(_pass(reader, outer), _pass(inner, writer))
            finally:
                passing.discard(task)

        server = await asyncio.start_server(accept, sock=self._listener, ssl=self._context)
        await stop.wait()
        server.close()
        for task in list(passing):
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while content := await reader.read(65536):
            writer.write(content)
            await writer.drain()
    except (OSError, ssl.SSLError):
        pass  # one of them is gone
    finally:
        writer.close()


async def touch(button: "Locator", *, ms: int) -> None:
    """Put a finger on a button for a while."""
    await button.scroll_into_view_if_needed()
    box = await button.bounding_box()
    assert box is not None
    finger = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    device = await button.page.context.new_cdp_session(button.page)
    start = device.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [finger]})
    end = device.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    if ms == 0:  # together, so that a slow machine does not make a tap a hold
        await asyncio.gather(start, end)
        return
    await start
    await button.page.wait_for_timeout(ms)
    await end


def test_a_phone_enters_by_a_code_and_approves_one_call_by_touch(
    tmp_path: Path, browser: BrowserThread
) -> None:
    asyncio.run(fill(tmp_path / "holdfast", waiting=("by-touch.txt",)))
    proxy = TlsProxy(tmp_path)
    with running_server(tmp_path, origin=proxy.origin, enters=False) as server:
        [address] = running_servers(Home(tmp_path / "holdfast"))
        with proxy.to(address.port):

            async def pair(page: "Page") -> str:
                await page.get_by_role("link", name="Devices").click()
                await page.get_by_role("button", name="Make a link").click()
                link = str(await page.locator("[role=status] code").inner_text())
                drawn = await page.locator("svg.qr path").get_attribute("d")
                assert drawn == qr_code(link).path
                return link

            async def approve(page: "Page") -> None:
                card = page.get_by_role("article")
                button = card.get_by_role("button", name="Hold to approve once", exact=True)
                await button.wait_for()
                assert not await page.evaluate("() => document.documentElement.scrollWidth > innerWidth")
                call = card.get_by_role("region")
                assert "by-touch.txt" in await call.inner_text()
                assert await call.evaluate("(box) => box.scrollWidth <= box.clientWidth"), "nothing is cut"
                await card.get_by_role("button", name="More").tap()
                assert await page.get_by_text("Approve more than this call").count() == 0
                await page.wait_for_timeout(750)  # what is shown can be approved
                await touch(button, ms=0)  # a tap
                await page.wait_for_timeout(QUIET_MS)
                assert await button.count() == 1, "a tap approves nothing"
                for _ in range(100):  # again where the machine was too slow
                    await page.wait_for_timeout(QUIET_MS)
                    if not await button.count():
                        break
                    await touch(button, ms=HOLD_MS)
                    with suppress(Exception):
                        await button.wait_for(state="detached", timeout=1_000)
                        break
                # It may answer, not operate, and no process holds the session.
                await page.get_by_text("approved here; no process continues the session").wait_for()

            link = browser.visit(server.link, pair, ignore_https_errors=True)
            browser.visit(link, approve, **PHONE)
            with running_server(tmp_path) as other:
                [answered, *_] = send(other.url, "GET", "/api/answered", token=other.token).data
        assert (answered["verdict"], answered["transport"]) == ("approve", "web")
