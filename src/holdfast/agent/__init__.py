"""One turn of an agent: ask the model, run what it wrote, show it the result."""

from holdfast.agent.code_run import CodeRun, bounded
from holdfast.agent.conversation import Conversation
from holdfast.agent.model_step import ModelStep
from holdfast.agent.prompt import Mode
from holdfast.agent.tool_replies import ended_by, explain_refusal, trace_of
from holdfast.agent.turn import Turn

__all__ = [
    "CodeRun",
    "Conversation",
    "Mode",
    "ModelStep",
    "Turn",
    "bounded",
    "ended_by",
    "explain_refusal",
    "trace_of",
]
