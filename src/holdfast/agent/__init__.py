"""One turn of an agent: ask the model, run what it wrote, show it the result."""

from holdfast.agent.code_run import CodeRun, bounded
from holdfast.agent.conversation import Conversation
from holdfast.agent.model_step import Asking
from holdfast.agent.prompt import Mode
from holdfast.agent.tool_replies import ended_by, explained, trace_of
from holdfast.agent.turn import Turn

__all__ = [
    "Asking",
    "CodeRun",
    "Conversation",
    "Mode",
    "Turn",
    "bounded",
    "ended_by",
    "explained",
    "trace_of",
]
