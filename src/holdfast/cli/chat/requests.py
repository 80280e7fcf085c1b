"""Control requests of other processes in words, for the chat that carries them out."""

from typing import assert_never

from holdfast.core import BUDGET_DIMENSIONS, escape_to_one_line, pluralize
from holdfast.gate import (
    AnswerEscalation,
    AnyControlRequest,
    CancelTurn,
    CommitProposals,
    DecideHunks,
    PostMessage,
    PreviewPort,
    RaiseBudget,
    RejectProposals,
    RevealOutput,
    RevokeGrant,
    RewindSession,
)

MAX_WORDS = 500


def describe_request(request: AnyControlRequest) -> str:
    """One line about a request."""
    match request:
        case PostMessage():
            return escape_to_one_line(request.text[:MAX_WORDS])
        case CancelTurn():
            return "stop the turn"
        case CommitProposals():
            return f"commit {pluralize(len(request.shown), 'change')}"
        case DecideHunks():
            accepted = sum(len(each.accepted) for each in request.decisions)
            rejected = sum(len(each.rejected) for each in request.decisions)
            return f"commit {pluralize(accepted, 'hunk')} and drop {rejected}"
        case RejectProposals():
            return f"reject {pluralize(len(request.paths), 'change')}"
        case RewindSession():
            return f"rewind to the end of turn {request.turn}"
        case RevealOutput():
            return f"let the model read {escape_to_one_line(request.output[:MAX_WORDS])}"
        case AnswerEscalation():
            return f"{request.response.verdict} {request.escalation}"
        case RaiseBudget():
            more = {
                each.word: each.format(amount)
                for each in BUDGET_DIMENSIONS
                if (amount := getattr(request.added, each.field)) is not None
            }
            return f"add to the budget: {', '.join(f'{word} {amount}' for word, amount in more.items())}"
        case RevokeGrant():
            return f"revoke the saved approval {request.grant}"
        case PreviewPort():
            return f"open port {request.port} of the sandbox to your browser"
        case _:
            assert_never(request)
