"""Markdown style of the chat: headings left-aligned, code blocks indented and without a frame."""

from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

THEME = Theme({"markdown.code": "bold cyan"})
_INDENT = (0, 0, 0, 2)


class _LeftHeading(Heading):
    """A left-aligned heading."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(self.text.plain, style="bold underline" if self.tag == "h1" else "bold")


class _OpenCode(CodeBlock):
    """A code block on the terminal's own background, readable on light themes and free of frame characters when copied."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = Syntax(
            str(self.text).rstrip(),
            self.lexer_name,
            theme="ansi_dark",
            background_color="default",
            word_wrap=True,
        )
        yield Padding(code, _INDENT)


_NOT_INTERPRETED = ("autolink", "entity", "image", "reference")
"""Rules that would hide what the model wrote: `&lt;`, the address of an image, the definition of a link."""


class LeftMarkdown(Markdown):
    """Markdown with these headings and code blocks, in which text between angle brackets is text and not HTML."""

    def __init__(self, markup: str) -> None:
        # hyperlinks=False: print the target of a link instead of hiding it behind its text.
        super().__init__("", hyperlinks=False)
        parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
        self.markup = markup
        self.parsed = parser.disable([*_NOT_INTERPRETED]).parse(markup)

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _OpenCode,
        "code_block": _OpenCode,
    }
