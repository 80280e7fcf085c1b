"""One turn of an agent: ask the model, run what it wrote, show it the result."""

from holdfast.agent.coderun import CodeRun, bounded
from holdfast.agent.compaction import compact
from holdfast.agent.conversation import Conversation
from holdfast.agent.prompt import EXECUTE_CODE
from holdfast.agent.refusals import explained
from holdfast.agent.turn import Mode, Turn

__all__ = ["EXECUTE_CODE", "CodeRun", "Conversation", "Mode", "Turn", "bounded", "compact", "explained"]
