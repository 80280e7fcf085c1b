"""Markdown style of the chat: headings left-aligned, code blocks indented and without a frame."""

from typing import ClassVar

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


class LeftMarkdown(Markdown):
    """Markdown with these headings and code blocks."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _OpenCode,
        "code_block": _OpenCode,
    }
