"""The guests of a session: one for each sandbox that its code runs in.

The main guest runs what the model writes. Each guest keeps its own variables, so code in one language leaves those of
another alone.
"""

from collections.abc import Callable

from holdfast.core.errors import InvalidInput
from holdfast.guests import Guest


class SessionGuests:
    """Creates a guest when code first needs it."""

    def __init__(self, main: str, create: Callable[[str], Guest]) -> None:
        self._main = main
        self._create = create
        """Creates a guest in a sandbox. Raises InvalidInput if there is none of that name, and EngineMissing."""
        self._guests: dict[str, Guest] = {}

    @classmethod
    def single(cls, guest: Guest) -> "SessionGuests":
        """One guest for all code."""

        def refuse(name: str) -> Guest:
            raise InvalidInput(
                f"this session runs {guest.capabilities.language}, not {name}", hint="leave out the language"
            )

        guests = cls(guest.capabilities.engine, refuse)
        guests._guests[guests._main] = guest
        return guests

    @property
    def main(self) -> Guest:
        """The guest of the session's own sandbox."""
        return self.in_sandbox(self._main)

    @property
    def language(self) -> str:
        """The language of the session's own sandbox."""
        return self.main.capabilities.language

    @property
    def dialect(self) -> str:
        """What the model is asked to write: the language, or `system` for the project's own Python."""
        main = self.main.capabilities
        return "system" if main.engine == "system" else main.language

    def in_sandbox(self, name: str) -> Guest:
        """The guest in a sandbox."""
        if name not in self._guests:
            self._guests[name] = self._create(name)
        return self._guests[name]

    def of_engine(self, engine: str) -> Guest:
        """The guest that a recorded run can resume in."""
        return self.main if engine == self.main.capabilities.engine else self.in_sandbox(engine)

    def speaking(self, language: str) -> Guest:
        """The guest for a language or sandbox: the session's own if it fits. Raises InvalidInput."""
        return self.main if language in ("", self._main, self.language) else self.in_sandbox(language)

    async def close(self) -> None:
        """Close every guest. Idempotent."""
        for guest in self._guests.values():
            await guest.close()
