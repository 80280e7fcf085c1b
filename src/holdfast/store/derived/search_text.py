"""What a search looks through: the text of an event, the words of a query, and the part of a text that shows a match."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from holdfast.core import Ok, Proposed
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CodePosted,
    Event,
    HistoryCompacted,
    MessagePosted,
    ModelReplied,
    RunEnded,
    RunStarted,
    TurnEnded,
)


def query_words(text: str) -> list[str]:
    """Split a query into words. Raises InvalidInput if there are none."""
    words = [word for word in text.split() if any(map(str.isalnum, word))]
    if not words:
        raise InvalidInput(
            "the query contains no word to search for", hint='for example: holdfast search "failing test"'
        )
    return words


def searchable_texts(event: Event) -> Iterator[tuple[int, str]]:
    """Yield the searchable texts of an event, each with its turn."""
    match event:
        case MessagePosted(turn=turn, text=text):
            yield turn, text
        case CodePosted(turn=turn, code=code) | RunStarted(turn=turn, code=code):
            yield turn, code
        case ModelReplied(turn=turn, message=message) if message.text:
            yield turn, message.text
        case RunEnded(turn=turn, printed=printed) if printed:
            yield turn, printed
        case TurnEnded(turn=turn, outcome=Ok(value=str(value)) | Proposed(value=str(value))):
            yield turn, value
        case HistoryCompacted(through=turn, summary=summary):
            yield turn, summary
        case _:
            return


def search_tokens(text: str) -> list[str]:
    """The words of a text in the form in which they are compared: lower case, without diacritics."""
    return [_plain(word) for word in _WORD.findall(text)]


def snippet(text: str, words: Sequence[str]) -> tuple[str, ...]:
    """The part of a text around its first match, split so that every second piece is a matched word."""
    found = list(_WORD.finditer(text))
    matches = [each for each in found if _plain(each[0]).startswith(tuple(words))]
    first = found.index(matches[0]) if matches else 0
    shown = found[max(first - SNIPPET_WORDS // 2, 0) :][:SNIPPET_WORDS]
    start = 0 if not shown or shown[0] is found[0] else shown[0].start()
    end = len(text) if not shown or shown[-1] is found[-1] else shown[-1].end()
    pieces, place = ["" if start == 0 else "…"], start
    for match in matches:
        if start <= match.start() and match.end() <= end:
            pieces[-1] += text[place : match.start()]
            pieces += [match[0], ""]
            place = match.end()
    pieces[-1] += text[place:end] + ("" if end == len(text) else "…")
    return tuple(pieces)


SNIPPET_WORDS = 16
_WORD = re.compile(r"[^\W_]+")


def _plain(word: str) -> str:
    parts = unicodedata.normalize("NFKD", word.lower())
    return "".join(char for char in parts if not unicodedata.combining(char))
