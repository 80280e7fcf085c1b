"""The outbox of a pair: letters that nobody waits for, until each has its receipt. They outlive the process."""

from holdfast.core import Outcome, Value
from holdfast.core.events import LetterLeft, LetterSettled
from holdfast.teams.contract import Letter
from holdfast.teams.postbox import Postbox


class Sent(Value):
    """A letter that was sent, and what became of it; None while it is on its way."""

    letter: Letter
    sent_ms: int
    outcome: Outcome | None = None


class Outbox:
    """Keeps, settles and lists the letters of one pair."""

    def __init__(self, postbox: Postbox) -> None:
        self._postbox = postbox

    async def keep(self, letter: Letter) -> None:
        """Take a letter in; durable when it returns. One that is known is not taken in again."""
        if letter.id not in {each.letter.id for each in await self.letters()}:
            left = LetterLeft(
                message=letter.id, text=letter.text, principal=letter.principal, hops=letter.hops
            )
            await self._postbox.put(left)

    async def settle(self, message: str, outcome: Outcome) -> None:
        """Record the receipt of a letter."""
        await self._postbox.put(LetterSettled(message=message, outcome=outcome))

    async def letters(self) -> list[Sent]:
        """Everything ever sent, oldest first."""
        left: dict[str, tuple[LetterLeft, int]] = {}
        settled: dict[str, Outcome] = {}
        for entry in await self._postbox.read():
            if isinstance(entry.event, LetterLeft):
                left[entry.event.message] = entry.event, entry.at_ms
            elif isinstance(entry.event, LetterSettled):
                settled[entry.event.message] = entry.event.outcome
        return [
            Sent(letter=self._letter(event), sent_ms=at_ms, outcome=settled.get(message))
            for message, (event, at_ms) in left.items()
        ]

    async def waiting(self) -> list[Letter]:
        """Letters without a receipt, oldest first."""
        return [each.letter for each in await self.letters() if each.outcome is None]

    def _letter(self, left: LetterLeft) -> Letter:
        return Letter(
            id=left.message,
            text=left.text,
            sender=self._postbox.pair.sender,
            principal=left.principal,
            hops=left.hops,
        )
