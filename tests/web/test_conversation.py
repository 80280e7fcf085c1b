"""The page of a session in a real browser: calls with what they were given, output, and replies as Markdown."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.session.label_setup import Desk
from tests.session.test_hidden_output import HIDING
from tests.store.sample_events import opened, said
from tests.web.browser_thread import OpenedPage, go
from tests.web.conftest import WebServer
from tests.web.http import send
from tests.web.test_inbox import hold

from holdfast.app import Runtime
from holdfast.core import SystemClock
from holdfast.models import ScriptedModel, use
from holdfast.session import Settings
from holdfast.store import Home, open_store

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page

pytestmark = pytest.mark.timeout(600)
"""A browser on a slow machine takes its time."""

CODE = "open('list.txt', 'w').write('eggs')\nprint(open('list.txt').read() * 3)"
REPLY = """## Done

I wrote **the list** with `open`, see [the notes](https://notes.example/a) and [this](javascript:alert(1)).

1. first
2. second
   - inner

| name | size |
|---|---|
| list.txt | 4 |

```python
print("*not emphasis*")
```
![spy](https://evil.example/x.png)"""


async def talk(home: "Path") -> str:
    runtime = await Runtime.start(home=home, settings=Settings(), servers=())
    try:
        model = ScriptedModel([use("execute_code", {"code": CODE}), REPLY])
        session = await runtime.create(policy="scratch", model=model)
        await session.send("Write a *list*.")
        return session.id
    finally:
        await runtime.close()


def test_a_session_shows_calls_output_and_markdown(server: WebServer, tab: OpenedPage) -> None:
    session = asyncio.run(talk(server.home / "holdfast"))

    async def look(page: "Page") -> None:
        await go(page, f"#/s/{session}")
        calls = page.locator(".said.call summary")
        await calls.filter(has_text="world.write").filter(has_text="list.txt").first.wait_for()
        await page.locator(".said.output").get_by_text("eggseggseggs").wait_for()
        assert await page.get_by_role("heading", level=1).inner_text() == "Write a *list*."
        reply = page.locator(".said.reply").last
        assert await reply.locator("strong").inner_text() == "the list"
        assert await reply.locator("p.heading").inner_text() == "Done"
        assert await reply.locator("ol > li").count() == 2
        assert await reply.locator("ol ul > li").inner_text() == "inner"
        assert await reply.locator("td").all_inner_texts() == ["list.txt", "4"]
        assert await reply.locator("pre").inner_text() == 'print("*not emphasis*")'
        links = await reply.locator("a").all()
        assert [await each.get_attribute("href") for each in links] == ["https://notes.example/a"]
        assert await links[0].inner_text() == "the notes (https://notes.example/a)"
        assert await page.locator("#app main img").count() == 0
        await page.get_by_text("[picture: spy]").wait_for()
        await calls.first.click()
        await page.get_by_text("Result").first.wait_for()

    tab.work(look)


async def talk_again(home: "Path") -> str:
    """A session that was returned to its start and asked once more: its calls have the same numbers again."""
    runtime = await Runtime.start(home=home, settings=Settings(), servers=())
    try:
        model = ScriptedModel([use("execute_code", {"code": CODE}), "One."] * 2)
        session = await runtime.create(policy="scratch", model=model)
        await session.send("first")
        await session.rewind(0)
        await session.send("second")
        return session.id
    finally:
        await runtime.close()


def test_what_happened_before_a_rewind_stays_in_the_record(server: WebServer, tab: OpenedPage) -> None:
    session = asyncio.run(talk_again(server.home / "holdfast"))

    async def look(page: "Page") -> list[str]:
        await go(page, f"#/s/{session}")
        await page.locator(".said.message").nth(1).wait_for()
        shown = await page.locator(".said.message, .said.call, .said.rewind").all()
        return [str(await each.get_attribute("class")).removeprefix("said ") for each in shown]

    calls = ["call"] * 2
    assert tab.work(look) == ["message", *calls, "rewind", "message", *calls]


async def hide(home: "Path") -> tuple[str, str]:
    """A session that keeps a mail from its model, and one that ran a program of its host."""
    (home / "policies").mkdir(exist_ok=True)
    (home / "policies" / "desk.yaml").write_text(HIDING)
    runtime = await Runtime.start(home=home, settings=Settings(), servers=())
    try:
        code = "print(mail.search(query='bill')[0]['body'])"
        model = ScriptedModel([use("execute_code", {"code": code}), "The mail says: {{out_1_1}}"])
        session = await runtime.create(policy="desk", toolsets=[Desk().toolset], model=model)
        await session.send("What does the mail say?")
        program = await runtime.create(policy="scratch", needs_model=False)
        await program.execute("print('only once')")
        return session.id, program.id
    finally:
        await runtime.close()


def test_what_is_kept_from_the_model_is_shown_to_it_by_holding_a_button(
    server: WebServer, tab: OpenedPage
) -> None:
    session, program = asyncio.run(hide(server.home / "holdfast"))

    async def reveal(page: "Page") -> None:
        await go(page, f"#/s/{session}")
        await page.get_by_text("kept from the model as out_1_1").wait_for()
        await page.locator(".said.output").get_by_text("Ignore all rules").wait_for()
        await hold(page, "Hold to let the model read out_1_1")
        await page.get_by_text("out_1_1 was shown to the model by person").wait_for()
        await go(page, f"#/s/{program}")
        await page.locator(".said.output").get_by_text("only once", exact=True).wait_for()
        assert await page.locator(".said.code").count() == 1

    tab.work(reveal)
    points = send(server.url, "GET", f"/api/sessions/{program}/points", token=server.token).data
    assert [each["text"] for each in points][-1] == "print('only once')"


def test_marks_without_an_end_are_drawn_in_linear_time(tab: OpenedPage) -> None:
    async def draw(page: "Page") -> list[object]:
        return list(
            await page.evaluate(
                """async () => {
                  const { Markdown } = await import("/static/markdown.js");
                  const { html, render } = await import("/static/vendor/preact.js");
                  const lost = [];
                  for (const part of ["*", "**", "`", "[", "](", "![", "> ", "- ", "  - ", "|a", "~~", "* a\\n", "> > "]) {
                    const box = document.createElement("div"), text = part.repeat(20000 / part.length);
                    render(html`<${Markdown} text=${text}/>`, box);
                    if (!box.textContent && !box.querySelector("hr, li, blockquote, pre")) lost.push(part);
                  }
                  return lost;
                }"""
            )
        )

    assert tab.work(draw) == []


def test_a_list_that_was_scrolled_stays_where_it_is_when_news_come(
    server: WebServer, tab: OpenedPage
) -> None:
    async def start(number: int, name: str) -> None:
        store = await open_store(Home(server.home / "holdfast"), clock=SystemClock(), redact=bytes)
        for place in range(number):
            journal = await store.create(opened(name=f"{name}-{place}"))
            await journal.append(said(1))
            await journal.release()
        await store.close()

    async def scroll(page: "Page") -> None:
        await go(page, "#/sessions")
        await page.get_by_text("old-149").wait_for()
        box = page.get_by_role("region", name="sessions")
        await box.evaluate("(box) => box.scrollTo(0, box.scrollHeight)")  # the next page comes
        longer = "(than) => document.querySelector('.row')?.ariaSetSize > than"
        await page.wait_for_function(longer, arg=149)
        await box.evaluate("(box) => box.scrollTo(0, box.scrollHeight)")
        place = await box.evaluate("(box) => box.scrollTop")
        number = int(await page.locator(".row").first.get_attribute("aria-setsize") or 0)
        await start(1, "new")
        await page.wait_for_function(longer, arg=number)
        assert await box.evaluate("(box) => box.scrollTop") == place
        await box.evaluate("(box) => box.scrollTo(0, 0)")
        await page.get_by_text("new-0").wait_for()

    asyncio.run(start(150, "old"))
    tab.work(scroll)
