"""Damage: the record of one pair cannot be read. It is told with the way out, and holds no other pair up."""

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.core import SessionId
from holdfast.core.errors import JournalDamaged


@contextmanager
def way_out(session: SessionId) -> Iterator[None]:
    """Say of damage how the pair can talk again: only a person gives up what is left of a record."""
    try:
        yield
    except JournalDamaged as damage:
        raise JournalDamaged(
            str(damage),
            hint=f"`holdfast export {session}` saves what can be read; after `holdfast delete {session}` the next"
            " message begins anew. Another thread (--thread NAME) needs neither.",
        ) from None
