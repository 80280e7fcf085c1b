"""The result of a turn: the answer on stdout, messages on stderr, and the exit code."""

from typing import assert_never

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console, MessageOutput
from holdfast.core import (
    Cycle,
    Error,
    Needs,
    Nonconverged,
    Ok,
    Outcome,
    Proposed,
    budget_word,
    escape_invisible,
)
from holdfast.session import Session


def report(
    outcome: Outcome, session: Session, is_json: bool, console: Console, *, printed: str | None = None
) -> int:
    """Print the result of a task and return its exit code. `printed` is the output of code that was run directly."""
    if is_json:
        console.json(
            {
                "session": session.id,
                "outcome": outcome,
                **({} if printed is None else {"printed": printed}),
                "spent": session.budget.spent,
                "files": _files(session),
                "proposals": [
                    {"path": p.path, "kind": p.kind, "diff": p.diff, "runs_when": p.runs_when, "asks": p.asks}
                    for p in session.proposals()
                ],
                "audit": session.audit(),
            }
        )
    elif isinstance(outcome, Ok | Proposed) and outcome.value is not None:
        from holdfast.services import answer_text

        console.print(escape_invisible(answer_text(outcome.value)))
    print_outcome(outcome, console)
    if isinstance(outcome, Error) and was_refused(session):
        return exit_codes.DENIED
    return exit_code(outcome)


def _files(session: Session) -> dict[str, list[str]]:
    """The files that the turn changed in the workspace."""
    changes = session.history()[-1].changes if session.history() else ()
    return {
        kind: [change.path for change in changes if change.kind == kind]
        for kind in ("created", "modified", "deleted")
    }


def was_refused(session: Session) -> bool:
    """Whether the last call of the last turn was refused."""
    entries = session.audit(turn=len(session.history()))
    return bool(entries) and entries[-1].result == "refused"


def print_outcome(outcome: Outcome, console: MessageOutput, *, in_chat: bool = False) -> None:
    """Print everything but the answer: what was staged, what waits, or what went wrong, with a hint."""
    from holdfast.services import describe_outcome  # loaded beside the first prompt, not before it

    match outcome:
        case Ok():
            return
        case Proposed() | Needs():
            console.say(describe_outcome(outcome), "ask", folds=True)
        case Nonconverged() | Cycle() | Error():
            console.say(describe_outcome(outcome), "bad", folds=True)
        case _:
            assert_never(outcome)
    if isinstance(outcome, Nonconverged) and outcome.reason == "budget":
        command = "/budget" if in_chat else "holdfast budget"
        then = "then the turn resumes" if in_chat else "which also prints how to resume"
        word = budget_word(outcome.dimension)
        console.say(f"hint: raise the limit with {command} add {word}=N, {then}", folds=True)
    elif isinstance(outcome, Needs):
        console.say(
            "hint: answer with holdfast approve or holdfast deny, which also print how to resume", folds=True
        )
    elif isinstance(outcome, Proposed):
        console.say("hint: review with holdfast proposals show, then commit or reject")
    elif isinstance(outcome, Error):
        console.say(f"hint: {outcome.hint or f'holdfast explain {_explained(outcome.code)}'}", folds=True)


def _explained(code: str) -> str:
    """The code, or that of any failed code if a program chose it: the name of an exception, or a word of its own."""
    from holdfast.cli.error_help import load_error_help

    return code if code in load_error_help() else "guest-error"


def exit_code(outcome: Outcome) -> int:
    """The exit code of an outcome."""
    match outcome:
        case Ok() | Proposed():
            return exit_codes.OK
        case Needs():
            return exit_codes.WAITING
        case Nonconverged():
            return exit_codes.INTERRUPTED if outcome.reason == "cancelled" else exit_codes.BUDGET
        case _:
            return exit_codes.ERROR
