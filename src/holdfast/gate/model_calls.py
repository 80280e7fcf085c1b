"""Model calls: recorded before, charged after, and refused when the budget could be exceeded."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import TypeVar

import msgspec

from holdfast.core import Amount, ModelMessage, Usage, UserMessage, encode
from holdfast.core.errors import ModelError
from holdfast.core.events import Event, ModelAsked, ModelFailed, ModelReplied
from holdfast.gate.budget import Budget
from holdfast.models import Model, OnPiece, Prompt, Reply, ReplyPiece, price_of
from holdfast.store import Journal

Summary = TypeVar("Summary", bound=Event)
"""The event made from a reply outside the conversation."""
_NOTHING = Usage(cost_usd=Decimal(0))
_DEFAULT_REPLY_TOKENS = 8_000
"""Maximum reply length when a budget applies and the prompt sets no maximum."""
_BYTES_PER_TOKEN = 3
"""Lower than any tokenizer's average for prose, so that an estimate is too high rather than too low."""


class ModelCalls:
    """The only path to a model."""

    def __init__(self, *, journal: Journal, budget: Budget) -> None:
        self._journal = journal
        self._budget = budget
        self._last = Usage()

    async def ask(self, *, turn: int, step: int, model: Model, prompt: Prompt, on_piece: OnPiece) -> Reply:
        """Ask for one reply. Raises BudgetExceeded before anything is spent, or ModelError."""
        async with self._recorded_request(turn, step, model, prompt, on_piece) as reply:
            self._last = reply.usage if reply.usage.input_tokens else self._estimate(prompt, reply)
            await self._journal.append(
                ModelReplied(
                    turn=turn,
                    step=step,
                    model=model.name,
                    message=reply.message,
                    usage=reply.usage,
                    finish=reply.finish,
                )
            )
        return reply

    async def ask_aside(
        self, *, turn: int, model: Model, prompt: Prompt, as_event: Callable[[Reply], Summary]
    ) -> Summary:
        """Ask outside the conversation, recorded as step 0. `as_event` turns the reply into the event that is recorded."""
        async with self._recorded_request(turn, 0, model, prompt, lambda _: None) as reply:
            event = as_event(reply)
            await self._journal.append(event)
        return event

    @asynccontextmanager
    async def _recorded_request(
        self, turn: int, step: int, model: Model, prompt: Prompt, on_piece: OnPiece
    ) -> AsyncIterator[Reply]:
        """Ask with the intent recorded first; the budget stays reserved until the caller has recorded the reply."""
        await self._budget.synchronize()
        amount, allowed = self._max_spend(model, prompt)
        heard_bytes = 0

        def count_and_forward(piece: ReplyPiece) -> None:
            nonlocal heard_bytes
            if piece.kind != "retry":
                heard_bytes += len(piece.text.encode())
            on_piece(piece)

        def failed(code: str, reason: str, usage: Usage) -> ModelFailed:
            return ModelFailed(turn=turn, step=step, code=code, reason=reason, usage=usage)

        reservation = await self._budget.reserve(amount)
        try:
            await self._journal.append(ModelAsked(turn=turn, step=step, model=model.name, reserved=amount))
            try:
                reply = await model.ask(
                    msgspec.structs.replace(prompt, max_tokens=allowed), count_and_forward
                )
            except ModelError as error:
                await self._journal.append(failed(error.code, str(error), error.usage or _NOTHING))
                raise
            except asyncio.CancelledError:
                usage = Usage(
                    input_tokens=self._prompt_tokens(prompt), output_tokens=heard_bytes // _BYTES_PER_TOKEN
                )
                usage = msgspec.structs.replace(usage, cost_usd=price_of(model.name, usage))
                reason = "cancelled before the reply was complete; the cost is an estimate"
                await asyncio.shield(self._journal.append(failed("cancelled", reason, usage)))
                raise
            yield reply
        finally:
            self._budget.release(reservation)

    def _max_spend(self, model: Model, prompt: Prompt) -> tuple[Amount, int | None]:
        """The amount to reserve and the maximum reply length, which is what the budget can pay for after the prompt."""
        tokens_left, money_left = self._budget.remaining("tokens"), self._budget.remaining("cost_usd")
        if tokens_left is None and money_left is None:
            return Amount(steps=1), prompt.max_tokens
        prompt_tokens, allowed = self._prompt_tokens(prompt), prompt.max_tokens or _DEFAULT_REPLY_TOKENS
        cost: Decimal | None = Decimal(0)
        if tokens_left is not None:
            allowed = min(allowed, max(1, int(tokens_left) - prompt_tokens))
        if money_left is not None:
            allowed = min(allowed, max(1, _affordable(model.name, prompt_tokens, money_left)))
            cost = price_of(model.name, Usage(input_tokens=prompt_tokens, output_tokens=allowed))
        return Amount(steps=1, tokens=prompt_tokens + allowed, cost_usd=cost), allowed

    def _estimate(self, prompt: Prompt, reply: Reply) -> Usage:
        """Estimated usage of a reply whose provider reports none."""
        reply_tokens = len(encode(reply.message)) // _BYTES_PER_TOKEN
        return Usage(input_tokens=self._prompt_tokens(prompt), output_tokens=reply_tokens)

    def _prompt_tokens(self, prompt: Prompt) -> int:
        """Estimated prompt length: the usage of the last reply plus what was added since. Constant time in the history."""
        new_bytes = media_tokens = 0
        for message in reversed(prompt.messages):
            if isinstance(message, ModelMessage) and self._last.input_tokens:
                known = self._last.input_tokens + self._last.output_tokens
                return known + media_tokens + new_bytes // _BYTES_PER_TOKEN
            new_bytes += len(encode(message))
            if isinstance(message, UserMessage):
                media_tokens += sum(each.tokens for each in message.attachments)
        return media_tokens + (new_bytes + len(encode((prompt.system, prompt.tools)))) // _BYTES_PER_TOKEN


def _affordable(model: str, prompt_tokens: int, money_left: Decimal) -> int:
    """How many reply tokens the money buys after the prompt; no bound if the reply is free or has no known price."""
    prompt = price_of(model, Usage(input_tokens=prompt_tokens))
    million = price_of(model, Usage(input_tokens=prompt_tokens, output_tokens=1_000_000))
    if prompt is None or million is None or million <= prompt:
        return sys.maxsize
    return int((money_left - prompt) / (million - prompt) * 1_000_000)
