"""The list of what waits: the words that are kept from one list to the next are those that a new list would have."""

import msgspec
from tests.store.sample_events import asked, opened, said

from holdfast.core import Call, SystemClock, call_id
from holdfast.core.events import EscalationExpired, EscalationOpened, Event, SessionRenamed
from holdfast.services import KeptWords, waiting
from holdfast.store import MemoryStore


def _asked(id: str, *, expires_ms: int | None = None, path: str = "a.txt") -> EscalationOpened:
    event = asked(1, id)
    call = Call(id=call_id(1, 1), operation="world.delete", arguments={"path": path})
    return msgspec.structs.replace(
        event, escalation=msgspec.structs.replace(event.escalation, call=call, expires_ms=expires_ms)
    )


async def test_kept_words_are_those_of_a_new_list() -> None:
    store, kept = MemoryStore(clock=SystemClock()), KeptWords()
    first, second = await store.create(opened()), await store.create(opened())
    changes: list[tuple[Event, ...]] = [
        (said(1), _asked("e1"), _asked("e2", expires_ms=50_000)),
        (SessionRenamed(name="other"),),
        (_asked("e3", path="p\u0430th\u200b.txt"),),
        (EscalationExpired(escalation=_asked("e1").escalation.id, reason="late"),),
    ]
    await second.append(said(1), _asked("e1", path="x" * 10_000))
    for now_ms, events in zip((0, 10_000, 40_000, 60_000), changes, strict=True):
        await first.append(*events)
        for _ in range(2):
            shown = await waiting(store, now_ms=now_ms, kept=kept)
            assert shown == await waiting(store, now_ms=now_ms)
            assert len(shown) >= 2
        assert await waiting(store, first.session, now_ms=now_ms, kept=kept) == [
            each for each in shown if each.session == first.session
        ]
