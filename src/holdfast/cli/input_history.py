"""The input history of the chat: a file with what the user typed, shared by all sessions."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.core import SessionId
from holdfast.core.errors import HoldfastError
from holdfast.core.events import MessagePosted
from holdfast.store import Home, Store, replace_private


def input_history(home: Home) -> Path:
    """The file of the input history."""
    return home.root / "history"


async def typed_in(home: Home, store: Store, sessions: Iterable[SessionId]) -> frozenset[str]:
    """What was typed in some sessions. Nothing if there is no history to remove it from, or if a session is damaged."""
    path, typed = input_history(home), set[str]()
    if not path.is_file() or not path.stat().st_size:
        return frozenset()
    for session in sessions:
        try:
            recorded = await store.read(session)
        except HoldfastError:
            continue
        typed |= {
            each.event.typed_text
            for each in recorded
            if each.session == session and isinstance(each.event, MessagePosted)
        }
    return frozenset(typed)


def forget_typed(home: Home, typed: frozenset[str]) -> None:
    """Remove entries from the input history."""
    path = input_history(home)
    if not typed or not path.is_file():
        return
    before = path.read_text(encoding="utf-8", errors="surrogateescape")
    after = "".join(text for entry, text in _entries(before) if entry not in typed)
    if after != before:
        replace_private(path, after.encode("utf-8", "surrogateescape"))


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Each entry with its text in the file: a comment with the time, then every line after a plus sign (prompt_toolkit)."""
    typed: list[str] = []
    written: list[str] = []
    for line in text.splitlines(keepends=True):
        if not line.startswith("+") and typed:
            yield "\n".join(typed), "".join(written)
            typed, written = [], []
        if line.startswith("+"):
            typed.append(line[1:].rstrip("\n"))
        written.append(line)
    yield "\n".join(typed), "".join(written)
