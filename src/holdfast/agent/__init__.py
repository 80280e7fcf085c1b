"""One turn of an agent: ask the model, run what it wrote, show it the result."""

from holdfast.agent.code_run import CodeRun
from holdfast.agent.conversation import Conversation
from holdfast.agent.hidden_output import hidden_output
from holdfast.agent.model_step import ModelStep
from holdfast.agent.prompt import ActsWith
from holdfast.agent.rebuild_state import RecordedAnswers
from holdfast.agent.session_guests import SessionGuests
from holdfast.agent.tool_replies import explain_refusal, outcome_of_error, traceback_note
from holdfast.agent.turn import Turn

__all__ = [
    "ActsWith",
    "CodeRun",
    "Conversation",
    "ModelStep",
    "RecordedAnswers",
    "SessionGuests",
    "Turn",
    "explain_refusal",
    "hidden_output",
    "outcome_of_error",
    "traceback_note",
]
