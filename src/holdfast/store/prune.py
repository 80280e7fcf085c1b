"""Pruning: sessions that have grown old go when somebody asks for it, with a report of each, and never by themselves."""

from collections.abc import Sequence
from typing import Literal

from holdfast.core import SessionId, Value
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.store.contract import SessionSummary
from holdfast.store.sqlite.store import SqliteStore

Exemption = Literal["live", "pinned", "named", "failed"]


class Pruned(Value):
    """One session that was, or would be, removed."""

    session: SessionId
    name: str | None
    active_ms: int
    turns: int
    first_words: str = ""


class Spared(Value):
    """One session that is old enough and stays all the same."""

    session: SessionId
    name: str | None
    why: Exemption
    detail: str = ""


class PruneReport(Value):
    """What pruning did, or would do."""

    pruned: tuple[Pruned, ...]
    spared: tuple[Spared, ...]
    kept: int
    is_dry_run: bool


async def prune(
    store: SqliteStore,
    *,
    now_ms: int,
    keep: int | None = None,
    older_than_ms: int | None = None,
    named_too: bool = False,
    pinned_too: bool = False,
    is_dry_run: bool = False,
) -> PruneReport:
    """Remove the sessions behind the newest `keep` that are older than `older_than_ms`; what is not given is no bound."""
    old = due(await store.sessions(), now_ms=now_ms, keep=keep, older_than_ms=older_than_ms)
    pruned: list[Pruned] = []
    spared: list[Spared] = []
    mentioned: set[str] = set()
    for line in old:
        reason = await _exemption(store, line, named_too=named_too, pinned_too=pinned_too)
        if reason is None and not is_dry_run:
            try:
                mentioned |= await store.remove(line.id, reason="pruned")
            except HoldfastError as problem:
                spared.append(Spared(session=line.id, name=line.name, why="failed", detail=str(problem)))
                continue
        if reason is None:
            pruned.append(_gone(line))
        else:
            spared.append(Spared(session=line.id, name=line.name, why=reason))
    if not is_dry_run:
        await store.sweep(frozenset(mentioned))  # once, since it looks through everything that is left
    total = len(await store.sessions())
    kept = total - len(pruned) if is_dry_run else total
    return PruneReport(pruned=tuple(pruned), spared=tuple(spared), kept=kept, is_dry_run=is_dry_run)


def due(
    newest_first: Sequence[SessionSummary], *, now_ms: int, keep: int | None, older_than_ms: int | None
) -> list[SessionSummary]:
    """The sessions that are old by what was asked, oldest last. Raises InvalidInput."""
    if keep is None and older_than_ms is None:
        raise InvalidInput("nothing says what is old", hint="give --keep N, --older-than 7d, or both")
    if (keep is not None and keep < 0) or (older_than_ms is not None and older_than_ms < 0):
        raise InvalidInput("a number below 0 keeps nothing and means nothing", hint="use 0 to keep none")
    beyond = list(newest_first)[keep or 0 :]
    if older_than_ms is None:
        return beyond
    ages = _honest_times(newest_first)
    return [line for line in beyond if now_ms - ages[line.id] > older_than_ms]


def _honest_times(newest_first: Sequence[SessionSummary]) -> dict[SessionId, int]:
    # A session cannot be older than one that was active before it: where the clock was set back, the order tells.
    times: dict[SessionId, int] = {}
    latest = 0
    for line in reversed(newest_first):
        latest = max(latest, line.active_ms)
        times[line.id] = latest
    return times


def _gone(line: SessionSummary) -> Pruned:
    return Pruned(
        session=line.id,
        name=line.name,
        active_ms=line.active_ms,
        turns=line.turns,
        first_words=line.first_words,
    )


async def _exemption(
    store: SqliteStore, line: SessionSummary, *, named_too: bool, pinned_too: bool
) -> Exemption | None:
    if await store.holder(line.id) is not None:
        return "live"
    if line.is_pinned and not pinned_too:
        return "pinned"
    return "named" if line.name is not None and not named_too else None
