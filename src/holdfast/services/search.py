"""Full-text search over all sessions, with what a person calls each session."""

from holdfast.core import SessionId
from holdfast.store import Passage, SessionSummary, Store


class FoundPassage(Passage):
    """A search hit, with the name of its session and its title or else its first words."""

    name: str | None = None
    title: str = ""


async def search_sessions(store: Store, text: str, *, limit: int) -> list[FoundPassage]:
    """Where words were said, newest first."""
    found = await store.search(text, limit=limit)
    lines: dict[SessionId, SessionSummary] = {
        session: await store.summary(session) for session in {each.session for each in found}
    }
    return [
        FoundPassage(
            session=each.session,
            seq=each.seq,
            turn=each.turn,
            at_ms=each.at_ms,
            snippet=each.snippet,
            pieces=each.pieces,
            name=lines[each.session].name,
            title=lines[each.session].title or lines[each.session].first_words,
        )
        for each in found
    ]
