"""Attacks in a real browser: another page, another port, and text that wants to be code. After each, the call still waits."""

import asyncio
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest
from tests.store.sample_events import opened
from tests.web.browser_thread import BrowserThread, OpenedPage, go
from tests.web.conftest import WebServer, running_server
from tests.web.http import send
from tests.web.sample_home import SampleHome, fill

from holdfast.app import Runtime
from holdfast.core import named_person
from holdfast.core.events import MessagePosted
from holdfast.session import Settings

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.timeout(600)
"""A browser on a slow machine takes its time."""

EXPECTED = (
    "Failed to load resource",
    "blocked by CORS",
    "ERR_",
    "Refused",
    "refused",
    "WebSocket",
    "violates",
    "NotSameOrigin",
    "net::",
)
"""What the browser itself reports when it stops an attack."""


class _Page(http.server.BaseHTTPRequestHandler):
    """A page of someone else, on another port of this machine, as a dev server that an agent wrote."""

    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.seen.append(str(self.headers))
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title><p>a page</p>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def evil() -> Iterator[str]:
    """The address of the foreign page."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def sample(server: WebServer) -> SampleHome:
    return asyncio.run(fill(server.home / "holdfast", waiting=("target.txt",)))


ATTACKS = {
    "a simple request": "fetch(U, {method: 'POST', body: B, headers: {'content-type': 'text/plain'}})",
    "a request without CORS": "fetch(U, {method: 'POST', mode: 'no-cors', body: B})",
    "a request with CORS and the token": (
        "fetch(U, {method: 'POST', body: B, headers: {'content-type': 'application/json', authorization: 'Bearer ' + T}})"
    ),
    "a request with credentials": "fetch(U, {method: 'POST', credentials: 'include', body: B})",
    "reading what waits": "fetch(O + 'api/waiting', {headers: {authorization: 'Bearer ' + T}})",
    "reading the stream": "fetch(O + 'api/stream', {headers: {authorization: 'Bearer ' + T}})",
    "our script as their script": (
        "new Promise((done, fail) => { const s = document.createElement('script'); s.src = O + 'static/app.js';"
        " s.onload = () => done({type: 'loaded', status: 200}); s.onerror = () => fail(new Error('refused')); document.head.append(s); })"
    ),
    "a socket": (
        "new Promise((done, fail) => { const w = new WebSocket(O.replace('http', 'ws') + 'api/stream');"
        " w.onopen = () => done({type: 'open', status: 200}); w.onerror = () => fail(new Error('refused')); })"
    ),
}


@pytest.fixture(scope="module")
def foreign(server: WebServer, evil: str, browser: BrowserThread) -> Iterator[OpenedPage]:
    """The foreign page, opened."""
    with browser.open(evil, allows=(server.url, *EXPECTED)) as opened:
        yield opened


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.promise("P19")
def test_another_page_can_neither_read_nor_answer(
    name: str, server: WebServer, sample: SampleHome, foreign: OpenedPage
) -> None:
    [call] = send(server.url, "GET", "/api/waiting", token=server.token).data
    path = f"api/waiting/{call['session']}/{call['escalation']['id']}"
    body = f'{{"verdict":"approve","digest":"{call["escalation"]["digest"]}"}}'

    async def attack(page: "Page") -> str:
        script = (
            f"async ([O, U, B, T]) => {{ try {{ const r = await ({ATTACKS[name]});"
            " return r.type === 'opaque' ? 'opaque' : 'answered ' + r.status; } catch (e) { return 'refused'; } }"
        )
        return str(await page.evaluate(script, [server.url, server.url + path, body, server.token]))

    assert foreign.work(attack) in ("refused", "opaque", "answered 403")
    assert [
        each["escalation"]["id"] for each in send(server.url, "GET", "/api/waiting", token=server.token).data
    ] == [call["escalation"]["id"]]


def test_a_form_of_another_page_does_nothing(
    server: WebServer, sample: SampleHome, evil: str, browser: BrowserThread
) -> None:
    [call] = send(server.url, "GET", "/api/waiting", token=server.token).data
    path = f"api/waiting/{call['session']}/{call['escalation']['id']}"

    async def submit(page: "Page") -> str:
        await page.evaluate(
            "([U]) => { const f = document.createElement('form'); f.method = 'POST'; f.action = U; f.enctype = 'text/plain';"
            ' const i = document.createElement(\'input\'); i.name = \'{"verdict":"approve","digest":"\'; i.value = \'"}\';'
            " f.append(i); document.body.append(f); f.submit(); }",
            [server.url + path],
        )
        await page.get_by_text("foreign-origin").wait_for()
        return page.url

    browser.visit(evil, submit, allows=(server.url, *EXPECTED))
    assert len(send(server.url, "GET", "/api/waiting", token=server.token).data) == 1


def test_the_page_cannot_be_framed(
    server: WebServer, sample: SampleHome, evil: str, browser: BrowserThread
) -> None:
    async def frame(page: "Page") -> bool:
        await page.evaluate(
            "([O]) => new Promise((done) => { const f = document.createElement('iframe'); f.src = O; f.onload = done;"
            " f.onerror = done; document.body.append(f); })",
            [server.url],
        )
        return any(
            [
                "Inbox" in await each.evaluate("() => document.body?.innerText ?? ''")
                for each in page.frames[1:]
            ]
        )

    assert browser.visit(evil, frame, allows=(server.url, *EXPECTED)) is False


def test_another_port_receives_no_cookie_and_no_token(
    server: WebServer, evil: str, browser: BrowserThread
) -> None:
    async def look(page: "Page") -> list[object]:
        await page.get_by_role("heading", name="Inbox").wait_for()
        _Page.seen.clear()
        await page.goto(evil)
        cookies = await page.context.cookies()
        return [
            *cookies,
            await page.evaluate("() => document.cookie + (localStorage.getItem('holdfast.own') ?? '')"),
        ]

    assert browser.visit(server.url, look, token=server.token, allows=(evil,)) == [""]
    assert _Page.seen
    assert not any(server.token in each or "cookie:" in each.lower() for each in _Page.seen)


def test_a_rebound_name_is_refused(server: WebServer) -> None:
    for host in ("evil.test", "evil.test:80", "0.0.0.0", "127.0.0.1", "[::1]", ""):
        answer = send(server.url, "GET", "/api/waiting", token=server.token, headers={"Host": host})
        assert answer.status in (400, 421), host


BASES = (
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    "<svg onload='window.hit = 1'>",
    "javascript:window.hit=1",
    '"><script>window.hit = 1</script>',
    "'-window.hit=1-'",
    "${window.hit = 1}",
    "{{constructor.constructor('window.hit=1')()}}",
    "<iframe srcdoc='<script>parent.hit = 1</script>'>",
    "<a href='javascript:window.hit=1'>x</a>",
    "</textarea><script>window.hit = 1</script>",
    "</title><script>window.hit = 1</script>",
    "<!--<img src=x onerror=window.hit=1>-->",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.hit=1>",
    "]]><script>window.hit = 1</script>",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "<style>@import 'http://evil.test/x'</style>",
    "<link rel=stylesheet href=http://evil.test/x>",
    "<meta http-equiv=refresh content='0;url=http://evil.test'>",
    "<object data=http://evil.test></object>",
)
WRAPPERS = (
    "{}",
    "a{}b",
    "{}\n{}",
    "`{}`",
    "```html\n{}\n```",
    "[x]({})",
    "![x]({})",
    "# {}",
    "\u202e{}",
    "{}\u200b",
)
PAYLOADS = [wrapper.replace("{}", base) for base in BASES for wrapper in WRAPPERS]


@pytest.mark.promise("P19")
def test_two_hundred_payloads_in_every_field_stay_text(tmp_path: Path, browser: BrowserThread) -> None:
    assert len(PAYLOADS) == 200
    session, staged, granted, written = asyncio.run(_poisoned(tmp_path / "holdfast"))
    with (
        running_server(tmp_path) as server,
        browser.open(server.url, token=server.token) as tab,
    ):
        link = send(server.url, "POST", "/api/devices/link", token=server.token, body={"right": "look"}).data
        body = {"code": link["url"].partition("enter=")[2], "name": f"a phone {BASES[1]}"}
        assert send(server.url, "POST", "/api/enter", body=body).status == 200
        for address, words in (
            ("#/", "The agent wants to write"),
            ("#/answered", "denied"),
            ("#/sessions", "1 turn"),
            (f"#/s/{session}", "denied by person"),
            (f"#/s/{session}/timeline", "turn"),
            (f"#/s/{session}/audit", "world.write"),
            (f"#/s/{staged}/changes", "Hold to commit"),
            (f"#/s/{staged}/files", "staged"),
            (f"#/s/{granted}/limits", "in this session"),
            (f"#/s/{written}", "question"),
            ("#/usage", "total"),
            ("#/usage folder", re.compile("^Folder$")),
            ("#/policy poison", "poisoned rules"),
            ("#/teams", "Roster"),
            ("#/devices", "a phone"),
        ):
            address, _, choice = address.partition(" ")

            async def look(
                page: "Page",
                address: str = address,
                words: str | re.Pattern[str] = words,
                choice: str = choice,
            ) -> list[object]:
                await go(page, address)
                if choice:
                    await page.locator("main select").first.select_option(choice)
                await page.locator("#main").get_by_text(words).first.wait_for()
                text = await page.evaluate("() => document.body.innerText")
                assert "\u202e" not in text
                assert "\u200b" not in text
                return [
                    await page.evaluate("() => window.hit ?? null"),
                    await page.evaluate(
                        "() => document.querySelectorAll('iframe, object, #app script, #app style').length"
                    ),
                ]

            assert tab.work(look) == [None, 0], address

        async def search(page: "Page") -> object:
            await go(page, "#/sessions")
            await page.get_by_role("searchbox").fill("window")
            await page.get_by_role("list", name="search results").get_by_text("window").first.wait_for()
            return await page.evaluate("() => window.hit ?? null")

        assert tab.work(search) is None


async def _poisoned(home: Path) -> tuple[str, str, str, str]:
    """A home with the payloads in messages, their authors, code, calls, names of files and folders, contents, reasons, saved
    approvals, policies and teams.
    """
    from holdfast.core import Response
    from holdfast.models import ScriptedModel, use

    runtime = await Runtime.start(home=home, settings=Settings(), servers=())
    try:
        everything = "\n".join(PAYLOADS)
        code = f"print({everything!r})\nopen('a.txt', 'w').write({everything!r})"
        session = await runtime.create(
            description=BASES[1],
            policy="ask-always",
            model=ScriptedModel([use("execute_code", {"code": code}, text=everything), everything]),
        )

        async def deny(_: object) -> Response:
            return Response(verdict="deny", reason=everything)

        session.approver = deny
        await session.send(everything)
        staged = await runtime.create(policy="project", needs_model=False)
        names = [base.replace("/", "_") for base in BASES]
        lines = "\n".join(f"open({name!r}, 'w').write({everything!r})" for name in names)
        await staged.execute(lines)
        assert staged.proposals()
        waiting = await runtime.create(policy="ask-always", needs_model=False)
        await waiting.execute(f"open({names[0]!r}, 'w').write({everything!r})")
        folder = home.parent / names[1]
        folder.mkdir()
        granted = await runtime.create(
            workspace=folder,
            policy="ask-always",
            model=ScriptedModel([use("execute_code", {"code": f"open({names[0]!r}, 'w').write('x')"}), "ok"]),
        )

        async def save(_: object) -> Response:
            return Response(verdict="approve", scope="session")

        granted.approver = save
        await granted.send("write it")
        journal = await runtime.store.create(opened(name=None, folder=names[2]))
        author = named_person(BASES[1])
        await journal.append(MessagePosted(turn=1, text=f"question {everything}", principal=author))
        await journal.release()
        _poison_files(home)
        return session.id, staged.id, granted.id, journal.session
    finally:
        await runtime.close()


def _poison_files(home: Path) -> None:
    """A policy and a team whose words are payloads."""
    (home / "policies").mkdir(exist_ok=True)
    text = json.dumps
    (home / "policies" / "poison.yaml").write_text(
        f"policy: poison\ndescription: {text('poisoned rules ' + BASES[0])}\nrules:\n"
        + "".join(
            f"  - {{name: rule-{number}, escalate: [world.write], because: {text(base)}}}\n"
            for number, base in enumerate(BASES)
        )
    )
    (home.parent / "team").mkdir()
    (home / "teams.yaml").write_text(
        f"teams:\n  web: {{project: {home.parent / 'team'}, member: holdfast, description: {text(BASES[1])}}}\n"
    )
