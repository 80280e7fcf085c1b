"""Usage as a table with bars that fit the width."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from holdfast.cli.terminal.wrap import cell_width, ellipsize, pad
from holdfast.core import escape_to_one_line
from holdfast.services import UsageGroup, UsageRow, total_usage

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_MIN_KEY, _MAX_KEY = 10, 32
_NUMBERS = 44
"""Columns of the numbers beside the name and the bar."""


def usage_lines(rows: Sequence[UsageRow], *, by: UsageGroup, width: int) -> Iterator[str]:
    """A header, a line for each row and the total. The bar shows the cost, or the tokens where nothing costs."""
    if not rows:
        yield "nothing was used in this time"
        return
    whole = total_usage(rows)
    keys = [escape_to_one_line(row.key) for row in rows]
    key_width = max(len(by), *(cell_width(key) for key in keys), len("total"))
    key_width = min(_MAX_KEY, max(_MIN_KEY, width - _NUMBERS), key_width)
    bar_width = max(0, min(40, width - key_width - _NUMBERS - 2))
    sizes = [_size(row, costs=bool(whole.cost_usd)) for row in rows]
    largest = max(sizes) or 1
    yield f"{by:<{key_width}}  {'cost':>9} {'tokens':>8} {'calls':>7} {'programs':>8} {'asked':>6}"
    for key, row, size in zip(keys, rows, sizes, strict=True):
        bar = _bar(size / largest, bar_width)
        yield f"{pad(ellipsize(key, key_width), key_width)}  {_numbers(row)}  {bar}".rstrip()
    yield f"{'total':<{key_width}}  {_numbers(whole)}"
    if whole.answered:
        yield f"answers took {_duration(whole.answer_ms / whole.answered)} on average ({whole.answered} answered)"
    if whole.calls:
        yield f"{whole.prompts / whole.calls:.2f} questions for each call"


def _numbers(row: UsageRow) -> str:
    cost = "unknown" if row.cost_usd is None else f"${row.cost_usd:.2f}"
    tokens = _short(row.input_tokens + row.output_tokens)
    return f"{cost:>9} {tokens:>8} {row.calls:>7} {row.commands:>8} {row.prompts:>6}"


def _size(row: UsageRow, *, costs: bool) -> float:
    return float(row.cost_usd or Decimal(0)) if costs else float(row.input_tokens + row.output_tokens)


def _bar(share: float, width: int) -> str:
    eighths = round(share * width * 8)
    if share > 0 and width:
        eighths = max(1, eighths)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def _short(number: int) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)


def _duration(milliseconds: float) -> str:
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
