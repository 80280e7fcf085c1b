"""Asking the model for its next step: what it is told, what it is offered, and what to do when it no longer fits."""

from typing import Literal

from holdfast.agent.compaction import compact
from holdfast.agent.conversation import Conversation
from holdfast.agent.prompt import LOOP_WARNING, code_offer, code_prompt, tool_offers, tool_prompt
from holdfast.core import Message, UserMessage
from holdfast.core.errors import ContextExceeded, ModelMissing
from holdfast.gate import Gate
from holdfast.models import Model, OnText, Prompt
from holdfast.store import Journal

Mode = Literal["code", "tools"]


class Asking:
    """Puts the conversation before the model; the gate records what it says."""

    def __init__(
        self,
        *,
        journal: Journal,
        conversation: Conversation,
        gate: Gate,
        model: Model | None,
        mode: Mode = "code",
        max_tokens: int | None = None,
        is_compacted_when_full: bool = False,
        max_history_messages: int | None = None,
    ) -> None:
        self._journal = journal
        self._conversation = conversation
        self._gate = gate
        self._model = model
        self._mode = mode
        self._max_tokens = max_tokens
        self._is_compacted_when_full = is_compacted_when_full
        self._max_history_messages = max_history_messages

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
            journal=self._journal,
            conversation=self._conversation,
            gate=self._gate,
            model=self.model,
            keep_turns=keep_turns,
        )
        return event.summary

    def _prompt(self) -> Prompt:
        tools = self._gate.tools()
        is_code = self._mode == "code"
        system = code_prompt(tools) if is_code else tool_prompt()
        return Prompt(
            system=system + LOOP_WARNING if self._gate.loops.verdict == "warn" else system,
            messages=_newest(self._conversation.messages, self._max_history_messages),
            tools=code_offer() if is_code else tool_offers(tools),
            max_tokens=self._max_tokens,
        )


def _newest(messages: tuple[Message, ...], limit: int | None) -> tuple[Message, ...]:
    """The last messages, from a person's message on, so that no call is parted from its return."""
    if limit is None or len(messages) <= limit:
        return messages
    starts = [n for n, message in enumerate(messages) if isinstance(message, UserMessage)]
    start = next((n for n in starts if n >= len(messages) - limit), starts[-1])
    return messages[start:]
