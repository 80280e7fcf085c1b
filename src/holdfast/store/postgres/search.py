"""The full-text index: a derived table, updated from the journals when somebody searches. An append does not touch it."""

import asyncpg
import msgspec

from holdfast.core import SessionId
from holdfast.core.events import decode_event
from holdfast.store.contract import Passage
from holdfast.store.derived.search_text import query_words, search_tokens, searchable_texts, snippet
from holdfast.store.postgres.database import SQL

BATCH_SIZE = 2000
MAX_WORD_CHARS = 200
MAX_INDEXED_BYTES = 500_000
"""Of the different words of one text. PostgreSQL indexes at most 1 MB of them."""


def query_tokens(text: str) -> list[str]:
    """The words of a query as they are in the index. Raises InvalidInput if there are none."""
    return [token[:MAX_WORD_CHARS] for word in query_words(text) for token in search_tokens(word)]


async def catch_up(connection: asyncpg.Connection) -> None:
    """Add the events that are not in the index yet. In a transaction; one process at a time."""
    await connection.execute(SQL["begin_search"])
    horizon = await connection.fetchval(SQL["search_horizon"])
    now = await connection.fetchval(SQL["settled_place"])
    while rows := await connection.fetch(SQL["unsearched"], horizon, BATCH_SIZE):
        await _add(connection, rows)
        if len(rows) < BATCH_SIZE:
            break
    await connection.execute(SQL["set_horizon"], now)


async def _add(connection: asyncpg.Connection, rows: list[asyncpg.Record]) -> None:
    passages: list[tuple[str, int, int, int, str, str]] = []
    upto: dict[str, int] = {}
    before: dict[str, tuple[int, str]] = {}
    for session, seq, at_ms, body in rows:
        upto[session] = max(seq, upto.get(session, 0))
        for turn, text in _texts(body):
            if before.get(session) == (turn, text):
                continue  # code that was posted and run, or a reply that is also the outcome, is one passage
            before[session] = (turn, text)
            passages.append((session, seq, turn, at_ms, text.replace("\0", ""), _index_words(text)))
    if passages:
        await connection.execute(SQL["add_passages"], *map(list, zip(*passages, strict=True)))
    await connection.execute(SQL["note_searched"], list(upto), list(upto.values()))


def _texts(body: bytes) -> list[tuple[int, str]]:
    try:
        return list(searchable_texts(decode_event(body)))
    except msgspec.MsgspecError:
        return []


def _index_words(text: str) -> str:
    words: dict[str, None] = {}
    size = 0
    for token in search_tokens(text):
        word = token[:MAX_WORD_CHARS]
        if word not in words:
            size += len(word.encode())
            if size > MAX_INDEXED_BYTES:
                break
            words[word] = None
    return " ".join(words)


async def find_passages(connection: asyncpg.Connection, words: list[str], limit: int) -> list[Passage]:
    """The passages that contain all words or words that start with them, newest first."""
    query = " & ".join(f"'{word}':*" for word in words)
    found: list[Passage] = []
    for session, seq, turn, at_ms, text in await connection.fetch(SQL["find_passages"], query, limit):
        owner = await connection.fetchval(SQL["owner_of"], session, seq)
        if owner is not None:
            pieces = snippet(text, words)
            found.append(
                Passage(
                    session=SessionId(owner),
                    seq=seq,
                    turn=turn,
                    at_ms=at_ms,
                    snippet="".join(pieces),
                    pieces=pieces,
                )
            )
    return found
