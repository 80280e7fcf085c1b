"""Markdown as a conversation shows it: headings at the left, code in line with the text and without a box around it."""

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
    """A heading where the eye looks for it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(self.text.plain, style="bold underline" if self.tag == "h1" else "bold")


class _OpenCode(CodeBlock):
    """Code on the terminal's own background, so that it can be read on light ones and copied without a frame."""

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
    """Markdown with our headings and code."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _OpenCode,
        "code_block": _OpenCode,
    }
