"""What a run has used of its limits. Reaching one ends the run with an error that names it and the way out."""

from typing import final

from holdfast.guests.contract import GuestLimits
from holdfast.guests.lisp.faults import LimitReached

MAX_MEMORY_BYTES = 64 << 20
"""A million pairs. Whatever a run may hold, its session has to save behind it, and Python's collector to look through."""
BYTES_PER_STEP = 64
"""An upper estimate of what an instruction allocates; what may take more is charged by itself."""


@final
class Meter:
    """Counts steps, calls, output, time and memory of one run."""

    def __init__(self, limits: GuestLimits) -> None:
        self.limits = limits
        self.memory_bytes = min(limits.memory_bytes, MAX_MEMORY_BYTES)
        self.steps = 0
        self.calls = 0
        self.seconds = 0.0
        self.wall_seconds = 0.0
        self.output: list[str] = []
        self.output_bytes = 0
        self.live_bytes = 0
        """Found by the last look at what is reachable."""
        self.new_bytes = 0
        """An upper estimate of what was allocated since."""
        self.is_measured = False
        """Whether memory was just looked at and nothing ran since."""

    def room_for_steps(self, wanted: int) -> int:
        """How many of the wanted steps may run; at least one, or the run ends."""
        if self.limits.steps is None:
            return wanted
        left = self.limits.steps - self.steps
        if left <= 0:
            raise LimitReached(
                "steps", f"the run used all of its {self.limits.steps} steps; allow more or do less"
            )
        return min(wanted, left)

    def count_steps(self, steps: int) -> None:
        """Steps that ran."""
        self.steps += steps
        self.new_bytes += steps * BYTES_PER_STEP

    def count_seconds(self, *, own: float, wall: float) -> None:
        """Time of the processor that the program itself took, and time that went by while it was not waiting."""
        self.seconds += own
        self.wall_seconds += wall
        if self.seconds > self.limits.seconds:
            raise LimitReached(
                "seconds", f"the run took longer than {self.limits.seconds:g} s of its own time"
            )
        if self.wall_seconds > self.limits.wall_seconds:
            raise LimitReached("wall_seconds", f"the run took longer than {self.limits.wall_seconds:g} s")

    def count_call(self) -> None:
        """A call to the host that is about to be made."""
        if self.calls >= self.limits.calls:
            raise LimitReached(
                "calls", f"the run made all of its {self.limits.calls} calls; allow more or make fewer"
            )
        self.calls += 1

    def print(self, text: str) -> None:
        """Output; what does not fit is cut off, and the run ends."""
        room = self.limits.output_bytes - self.output_bytes
        encoded = text.encode()
        if len(encoded) > room:
            self.output.append(encoded[:room].decode(errors="ignore"))
            self.output_bytes = self.limits.output_bytes
            raise LimitReached("output_bytes", f"the run printed more than {self.limits.output_bytes} bytes")
        self.output.append(text)
        self.output_bytes += len(encoded)

    @property
    def is_crowded(self) -> bool:
        """Whether the memory in use has to be looked at before the run goes on."""
        return self.live_bytes + self.new_bytes > self.memory_bytes

    def has_room(self, size: int) -> bool:
        """Whether so many bytes surely fit."""
        return self.live_bytes + self.new_bytes + size <= self.memory_bytes

    def found_live(self, size: int) -> None:
        """What is reachable was looked at."""
        self.live_bytes, self.new_bytes, self.is_measured = size, 0, True
        if size > self.memory_bytes:
            raise LimitReached("memory_bytes", f"the run holds more than {self.memory_bytes} bytes")
