"""The page of a session in a real browser: calls with what they were given, output, and replies as Markdown."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.web.browser_thread import BrowserThread
from tests.web.conftest import WebServer

from holdfast.app import Runtime
from holdfast.models import ScriptedModel, use
from holdfast.session import Settings

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


def test_a_session_shows_calls_output_and_markdown(server: WebServer, browser: BrowserThread) -> None:
    session = asyncio.run(talk(server.home / "holdfast"))

    async def look(page: "Page") -> None:
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

    browser.visit(f"{server.url}#/s/{session}", look, token=server.token)


def test_marks_without_an_end_are_drawn_in_linear_time(server: WebServer, browser: BrowserThread) -> None:
    async def draw(page: "Page") -> list[object]:
        await page.get_by_role("heading", name="Inbox").wait_for()
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

    assert browser.visit(server.url, draw, token=server.token) == []
