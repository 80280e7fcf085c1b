"""How a turn ended, for a person and for a program: words on stderr, the answer on stdout, one exit code."""

from typing import assert_never

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console, Output, visible
from holdfast.core import (
    Cycle,
    Error,
    Json,
    Needs,
    Nonconverged,
    Ok,
    Outcome,
    Proposed,
    budget_word,
    encode,
    pluralize,
)
from holdfast.session import Session


def report(
    outcome: Outcome, session: Session, is_json: bool, console: Console, *, printed: str | None = None
) -> int:
    """Print the answer of a task, and return the exit code that fits. `printed` is what posted code wrote."""
    if is_json:
        console.json(
            {
                "session": session.id,
                "outcome": outcome,
                **({} if printed is None else {"printed": printed}),
                "spent": session.budget.spent,
                "files": _files(session),
                "proposals": [{"path": p.path, "kind": p.kind, "diff": p.diff} for p in session.proposals()],
                "audit": session.audit(),
            }
        )
    elif isinstance(outcome, Ok | Proposed) and outcome.value is not None:
        console.print(visible(_shown(outcome.value)))
    print_outcome(outcome, console)
    if isinstance(outcome, Error) and was_refused(session):
        return exit_codes.DENIED
    return exit_code(outcome)


def _files(session: Session) -> dict[str, list[str]]:
    """What the turn left behind in the workspace."""
    changes = session.history()[-1].changes if session.history() else ()
    return {
        kind: [change.path for change in changes if change.kind == kind]
        for kind in ("created", "modified", "deleted")
    }


def was_refused(session: Session) -> bool:
    """Whether the last thing that the last turn asked for was refused."""
    entries = session.audit(turn=len(session.history()))
    return bool(entries) and entries[-1].result == "refused"


def print_outcome(outcome: Outcome, console: Output) -> None:
    """What the person should know besides the answer."""
    match outcome:
        case Ok():
            return
        case Proposed() | Needs():
            console.say(in_words(outcome), "ask", folds=True)
        case Nonconverged() | Cycle() | Error():
            console.say(in_words(outcome), "bad", folds=True)
        case _:
            assert_never(outcome)
    if isinstance(outcome, Nonconverged) and outcome.reason == "budget":
        console.say(
            f"hint: holdfast budget add {budget_word(outcome.dimension)}=N, which also says how to go on"
        )
    elif isinstance(outcome, Needs):
        console.say("hint: holdfast approve or deny answers it and says how to go on", folds=True)
    elif isinstance(outcome, Proposed):
        console.say("hint: holdfast proposals show, then commit or reject")
    elif isinstance(outcome, Error):
        console.say(f"hint: {outcome.hint or f'holdfast explain {outcome.code}'}", folds=True)


def in_words(outcome: Outcome) -> str:
    """How it ended, for a person; programs read the names of outcomes in JSON."""
    match outcome:
        case Ok():
            return "done"
        case Proposed():
            return f"proposed, not yet made: {', '.join(map(visible, outcome.proposals))}"
        case Needs():
            return visible(outcome.description)
        case Nonconverged(reason="budget"):
            return f"stopped before it was done: the limit of {budget_word(outcome.dimension)} is reached"
        case Nonconverged(reason="cancelled"):
            return "stopped before it was done, by you or the program that runs it"
        case Nonconverged():
            return f"stopped before it was done, after {pluralize(outcome.iterations, 'round')}"
        case Cycle():
            return f"stopped: it did the same and got the same {outcome.length} times"
        case Error():
            return f"error: {visible(outcome.message)} ({outcome.code})"
        case _:
            assert_never(outcome)


def exit_code(outcome: Outcome) -> int:
    """The exit code that fits an outcome."""
    match outcome:
        case Ok() | Proposed():
            return exit_codes.OK
        case Needs():
            return exit_codes.WAITING
        case Nonconverged():
            return exit_codes.INTERRUPTED if outcome.reason == "cancelled" else exit_codes.BUDGET
        case _:
            return exit_codes.ERROR


def _shown(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()
