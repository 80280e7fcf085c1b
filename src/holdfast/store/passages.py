"""Passages: where something was said, in any session."""

from collections.abc import Sequence

from holdfast.store.embedded import EmbeddedStore
from holdfast.store.wordfile import Passage, answer, question_of


async def search(store: EmbeddedStore, text: str, *, limit: int = 20) -> Sequence[Passage]:
    """Where all these words (or words that begin so) were said, newest first. Raises InvalidInput for no words."""
    question = question_of(text)
    return await store.reading(
        lambda connection: answer(connection, store.home.search, question, max(limit, 0))
    )
