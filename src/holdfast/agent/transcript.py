"""The messages of a conversation up to a point, without a copy of them."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import overload

from holdfast.core import Message


class Transcript(Sequence[Message]):
    """A look at a list that only grows, with what stands before and after it. What is appended later is not seen."""

    __slots__ = ("_after", "_before", "_length", "_messages")

    def __init__(
        self, messages: list[Message], *, before: tuple[Message, ...] = (), after: tuple[Message, ...] = ()
    ) -> None:
        self._messages = messages
        self._length = len(messages)
        self._before = before
        self._after = after

    def __len__(self) -> int:
        return len(self._before) + self._length + len(self._after)

    def __iter__(self) -> Iterator[Message]:
        return chain(self._before, islice(self._messages, self._length), self._after)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...

    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        place = range(len(self))[index] - len(self._before)
        if place < 0:
            return self._before[place]
        return self._messages[place] if place < self._length else self._after[place - self._length]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} messages>"
