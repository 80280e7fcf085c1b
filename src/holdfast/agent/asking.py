"""Asking the model for its next step: what it is told, what it is offered, and what to do when it no longer fits."""

from collections.abc import Sequence
from itertools import chain

from holdfast.agent.compaction import compact
from holdfast.agent.conversation import Conversation
from holdfast.agent.prompt import LOOP_WARNING, Briefing, Mode, brief
from holdfast.core import Message, Tool, UserMessage
from holdfast.core.errors import ContextExceeded, ModelMissing
from holdfast.gate import Gate
from holdfast.models import Model, OnText, Prompt


class Asking:
    """Puts the conversation before the model; the gate records what it says."""

    def __init__(
        self,
        *,
        conversation: Conversation,
        gate: Gate,
        model: Model | None,
        mode: Mode = "code",
        max_tokens: int | None = None,
        is_compacted_when_full: bool = False,
        max_history_messages: int | None = None,
    ) -> None:
        self._conversation = conversation
        self._gate = gate
        self._model = model
        self._mode = mode
        self._max_tokens = max_tokens
        self._is_compacted_when_full = is_compacted_when_full
        self._max_history_messages = max_history_messages
        self._briefing: Briefing | None = None

    @property
    def model(self) -> Model:
        """Who is asked. Raises ModelMissing where there is none."""
        if self._model is None:
            raise ModelMissing(
                "this session has no model", hint="take it up again with --model provider:name"
            )
        return self._model

    async def ask(self, on_text: OnText) -> None:
        """One reply on the record, or room made for it. Raises BudgetExceeded or ModelError."""
        state, model = self._conversation, self.model
        try:
            await self._gate.consult(
                turn=state.turn, step=state.steps + 1, model=model, prompt=self._prompt(), on_text=on_text
            )
        except ContextExceeded:
            if not self._is_compacted_when_full or not state.messages_through(state.turn - 1):
                raise
            await self.compact(keep_turns=1)

    async def compact(self, *, keep_turns: int) -> str:
        """Put a summary in the place of older turns, and return it."""
        event = await compact(
            conversation=self._conversation,
            gate=self._gate,
            model=self.model,
            keep_turns=keep_turns,
        )
        return event.summary

    def _prompt(self) -> Prompt:
        briefing = self._brief(self._gate.tools())
        is_going_round = self._gate.loops.verdict == "warn"
        return Prompt(
            system=briefing.system + LOOP_WARNING if is_going_round else briefing.system,
            messages=_newest(self._conversation.messages, self._max_history_messages),
            tools=briefing.offers,
            max_tokens=self._max_tokens,
        )

    def _brief(self, tools: tuple[Tool, ...]) -> Briefing:
        """Written once for as long as the tools are the same: typed stubs take longer to write than to send."""
        if self._briefing is None or self._briefing.tools != tools:
            self._briefing = brief(tools, self._mode)
        return self._briefing


def _newest(messages: Sequence[Message], limit: int | None) -> Sequence[Message]:
    """The last messages, from a person's message on, so that no call is parted from its return."""
    if limit is None or len(messages) <= limit:
        return messages
    first = len(messages) - limit
    later = (place for place in range(first, len(messages)) if isinstance(messages[place], UserMessage))
    earlier = (place for place in range(first - 1, -1, -1) if isinstance(messages[place], UserMessage))
    return messages[next(chain(later, earlier), 0) :]
