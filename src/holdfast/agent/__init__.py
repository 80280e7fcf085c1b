"""One turn of an agent: ask the model, run what it wrote, show it the result."""

from holdfast.agent.asking import Asking
from holdfast.agent.coderun import CodeRun, bounded
from holdfast.agent.conversation import Conversation
from holdfast.agent.endings import ended_by, trace_of
from holdfast.agent.prompt import Mode
from holdfast.agent.refusals import explained
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
