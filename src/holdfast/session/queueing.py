"""The line before a session: whoever waits for the running turn to end, first come, first served."""

import asyncio
from collections import deque

from holdfast.core.errors import HoldfastError


class Line:
    """Places in the order they were taken. Nobody is let in before the one in front."""

    def __init__(self) -> None:
        self._places: deque[asyncio.Future[None]] = deque()

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._places)

    async def wait(self) -> None:
        """Stand in line until called. Raises what the line was dissolved with."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._places.append(place)
        try:
            await place
        finally:
            self._places.remove(place)

    def call_first(self) -> None:
        """Let the first one in."""
        if self._places and not self._places[0].done():
            self._places[0].set_result(None)

    def dissolve(self, error: HoldfastError) -> None:
        """Send everybody away."""
        for place in self._places:
            if not place.done():
                place.set_exception(error)
