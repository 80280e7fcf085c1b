"""The order of turns, calls and restore points in an untrusted journal.

A restore point is where a rewind or a fork returns to: one that lies in a later turn than its own would let that turn go on there. A call
is answered from the journal if it is made again: one of a turn that has not begun would answer a call of the future.
"""

from typing import NamedTuple

from holdfast.core import Call
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CodePosted,
    EscalationOpened,
    Event,
    MessagePosted,
    RestorePointMade,
    SessionRewound,
    TurnEnded,
    TurnReopened,
)


class _Place(NamedTuple):
    """What holds from an event on, unless a rewind undoes it."""

    seq: int
    begun: int
    """The last turn that began."""
    open: int | None


class TurnOrder:
    """Follows the events of a journal, from the first."""

    def __init__(self) -> None:
        self._places = [_Place(0, 0, None)]

    def accepts(self, seq: int, event: Event) -> bool:
        """Whether an event may come here."""
        now = self._places[-1]
        match event:
            case MessagePosted() | CodePosted():
                self._places.append(_Place(seq, event.turn, event.turn))
            case TurnReopened():
                self._places.append(_Place(seq, now.begun, event.turn))
            case TurnEnded():
                self._places.append(_Place(seq, now.begun, None))
            case SessionRewound():
                while len(self._places) > 1 and self._places[-1].seq > event.seq:
                    self._places.pop()
            case RestorePointMade():
                return now.open in (None, event.turn)
            case CallIntended() | CallRefused():
                return _has_begun(event.call, now)
            case EscalationOpened():
                return _has_begun(event.escalation.call, now)
            case _:
                pass
        return True


def _has_begun(call: Call, now: _Place) -> bool:
    try:
        return call.turn <= now.begun
    except ValueError:  # an id without a turn
        return False
