"""Pruning: deletes old sessions on request, never automatically, and reports each one."""

from collections.abc import Sequence
from typing import Literal

from holdfast.core import SessionId, Value
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.store.contract import SessionSummary, Store

Exemption = Literal["live", "pinned", "named", "failed"]


class PrunedSession(Value):
    """A session that was deleted, or would be."""

    session: SessionId
    name: str | None
    active_ms: int
    turns: int
    first_words: str = ""


class SparedSession(Value):
    """A session that is old enough but is kept."""

    session: SessionId
    name: str | None
    why: Exemption
    detail: str = ""


class PruneReport(Value):
    """What was pruned, or would be."""

    pruned: tuple[PrunedSession, ...]
    spared: tuple[SparedSession, ...]
    kept: int
    is_dry_run: bool


async def prune(
    store: Store,
    *,
    now_ms: int,
    keep: int | None = None,
    older_than_ms: int | None = None,
    named_too: bool = False,
    pinned_too: bool = False,
    is_dry_run: bool = False,
) -> PruneReport:
    """Delete the sessions that are not among the newest `keep` and are older than `older_than_ms`; None means no bound."""
    old = old_sessions(await store.sessions(), now_ms=now_ms, keep=keep, older_than_ms=older_than_ms)
    pruned: list[PrunedSession] = []
    spared: list[SparedSession] = []
    mentioned: set[str] = set()
    for line in old:
        reason = await _exemption(store, line, named_too=named_too, pinned_too=pinned_too)
        if reason is None and not is_dry_run:
            try:
                mentioned |= await store.remove(line.id, reason="pruned")
            except HoldfastError as problem:
                spared.append(
                    SparedSession(session=line.id, name=line.name, why="failed", detail=str(problem))
                )
                continue
        if reason is None:
            pruned.append(_pruned(line))
        else:
            spared.append(SparedSession(session=line.id, name=line.name, why=reason))
    if not is_dry_run:
        await store.sweep(frozenset(mentioned))  # once, because it reads all remaining events
    total = len(await store.sessions())
    kept = total - len(pruned) if is_dry_run else total
    return PruneReport(pruned=tuple(pruned), spared=tuple(spared), kept=kept, is_dry_run=is_dry_run)


def old_sessions(
    newest_first: Sequence[SessionSummary], *, now_ms: int, keep: int | None, older_than_ms: int | None
) -> list[SessionSummary]:
    """Select the old sessions, oldest last. Raises InvalidInput."""
    if keep is None and older_than_ms is None:
        raise InvalidInput(
            "neither a count nor an age was given", hint="use --keep N, --older-than 7d, or both"
        )
    if (keep is not None and keep < 0) or (older_than_ms is not None and older_than_ms < 0):
        raise InvalidInput("the count or age is negative", hint="use --keep 0 to keep none")
    beyond = list(newest_first)[keep or 0 :]
    if older_than_ms is None:
        return beyond
    ages = _monotonic_times(newest_first)
    return [line for line in beyond if now_ms - ages[line.id] > older_than_ms]


def _monotonic_times(newest_first: Sequence[SessionSummary]) -> dict[SessionId, int]:
    # A session cannot be older than one that was active before it. If the clock was set back, the order decides.
    times: dict[SessionId, int] = {}
    latest = 0
    for line in reversed(newest_first):
        latest = max(latest, line.active_ms)
        times[line.id] = latest
    return times


def _pruned(line: SessionSummary) -> PrunedSession:
    return PrunedSession(
        session=line.id,
        name=line.name,
        active_ms=line.active_ms,
        turns=line.turns,
        first_words=line.first_words,
    )


async def _exemption(
    store: Store, line: SessionSummary, *, named_too: bool, pinned_too: bool
) -> Exemption | None:
    if await store.holder(line.id) is not None:
        return "live"
    if line.is_pinned and not pinned_too:
        return "pinned"
    return "named" if line.name is not None and not named_too else None
