"""Typical command lines of continuous integration and of task runners, by kind: `data/command-lines.tsv`."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).parent / "data" / "command-lines.tsv"


class CommandLine(NamedTuple):
    """One line. Of the kind `dangerous` is what publishes, deploys, destroys or leaks if it runs outside a sandbox."""

    command: str
    kind: str


def command_lines() -> Iterator[CommandLine]:
    """Every line of the corpus."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        yield from (CommandLine(*row) for row in rows)
