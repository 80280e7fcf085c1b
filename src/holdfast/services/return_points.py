"""The turns that a session can return to: those with a restore point."""

from collections.abc import Sequence

from holdfast.core import Value
from holdfast.core.events import CodePosted, MessagePosted, RecordedEvent, RestorePointMade
from holdfast.core.projection import without_rewound

MAX_CHARACTERS = 200


class ReturnPoint(Value, omit_defaults=False):
    """A turn that the session can return to, and the start of its message or code. Turn 0 is before the first one."""

    turn: int
    text: str


def return_points(recorded: Sequence[RecordedEvent]) -> list[ReturnPoint]:
    """The turns with a restore point, oldest first."""
    words: dict[int, str] = {}
    turns: dict[int, None] = {}
    for each in without_rewound(recorded):
        match each.event:
            case MessagePosted(turn=turn, text=text) | CodePosted(turn=turn, code=text):
                words[turn] = text[:MAX_CHARACTERS]
            case RestorePointMade(turn=turn):
                turns[turn] = None
            case _:
                pass
    return [ReturnPoint(turn=turn, text=words.get(turn, "")) for turn in turns]
