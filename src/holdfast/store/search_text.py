"""What a search looks through: the text of an event, and the words of a query."""

from collections.abc import Iterator

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
