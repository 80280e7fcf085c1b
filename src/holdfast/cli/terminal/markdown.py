"""Markdown style of the chat: headings left-aligned, code blocks indented and without a frame, no text dropped."""

import re
from typing import ClassVar, Self

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit, getLine
from markdown_it.token import Token
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

    label = ""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> Self:
        language, label = _read_fence_info(token.info)
        block = cls(language or "text", markdown.code_theme)
        block.label = label
        return block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.label:
            yield Padding(Text(self.label, style="dim"), _INDENT)
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
        parser.block.ruler.at("table", _table_with_all_cells, {"alt": ["paragraph", "reference"]})
        self.markup = markup
        self.parsed = parser.disable([*_NOT_INTERPRETED]).parse(markup)

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "fence": _OpenCode,
        "code_block": _OpenCode,
    }


def _read_fence_info(info: str) -> tuple[str, str]:
    """The language of a code block, and what else stands behind its fence, such as the name of a file."""
    match = re.fullmatch(r"([\w+#-]*)(?:\s+(.*))?", info.strip())
    return (match[1], match[2] or "") if match else ("", info.strip())


def _table_with_all_cells(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """The `table` rule, but the last cell of a row keeps the cells that the header has no column for.

    Models write `str | None` in a cell without escaping it. The rule of GFM drops what stands behind.
    """
    first = len(state.tokens)
    if not table(state, start_line, end_line, silent):
        return False
    cells: list[Token] = []
    for token in state.tokens[first:]:
        match token.type:
            case "tr_open":
                cells = []
            case "inline":
                cells.append(token)
            case "tr_close":
                line, last = cells[-1].map, cells[-1]
                surplus = _split_row(getLine(state, line[0]))[len(cells) :] if line else []
                last.content = " | ".join([last.content, *surplus])
            case _:
                pass
    return True


def _split_row(line: str) -> list[str]:
    cells = escapedSplit(line.strip())
    if cells and not cells[0]:
        cells.pop(0)
    if cells and not cells[-1]:
        cells.pop()
    return [cell.strip() for cell in cells]
