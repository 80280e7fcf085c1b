"""The review of proposals in plain mode: each hunk as text with a question, answered by a line."""

from collections.abc import Awaitable, Callable, Sequence

from holdfast.cli.views.hunk_review import HunkReview
from holdfast.world import HunkDecision, Proposal

_QUESTION = "y, n, y file, n file, Enter for later, q to quit> "

Ask = Callable[[str], Awaitable[str | None]]


async def review_by_line(
    proposals: Sequence[Proposal], *, say: Callable[[str], None], ask: Ask
) -> tuple[HunkDecision, ...]:
    """What the person decided; empty if they left or decided nothing."""
    hunks = HunkReview(proposals)
    is_next = True
    while is_next:
        say(hunks.title)
        for line in hunks.current_lines():
            say(line.text)
        answer = await ask(_QUESTION)
        match "q" if answer is None else " ".join(answer.lower().split()):
            case "y" | "yes":
                is_next = hunks.decide_and_move("accept")
            case "n" | "no":
                is_next = hunks.decide_and_move("reject")
            case "y file" | "yes file":
                is_next = hunks.decide_and_move("accept", is_whole_file=True)
            case "n file" | "no file":
                is_next = hunks.decide_and_move("reject", is_whole_file=True)
            case "" | "later":
                is_next = hunks.decide_and_move(None)
            case "q" | "quit":
                return ()
            case _:
                say("that is not one of the answers")
    if not hunks.is_decided:
        return ()
    confirmed = await ask(f"{hunks.question} [y/N] ")
    return hunks.decisions() if confirmed is not None and confirmed.lower() in ("y", "yes") else ()
