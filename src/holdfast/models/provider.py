"""A model of a provider, asked over HTTP through the provider library. Loads that library: open it with `open_model`."""

import itertools
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from decimal import Decimal
from typing import TypeVar

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPartDelta,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import StreamedResponse
from pydantic_ai.settings import ModelSettings as LibrarySettings
from pydantic_ai.usage import RequestUsage

from holdfast.core import Finish, ModelMessage, Usage, pluralize
from holdfast.core.errors import ModelUnavailable
from holdfast.models.contract import OnText, Prompt, Reply
from holdfast.models.errors import PROVIDER_ERRORS, ReplyTooLong, classify
from holdfast.models.prices import context_tokens, price_of_request
from holdfast.models.retry import RetryPolicy
from holdfast.models.specs import ModelSettings, ModelSpec
from holdfast.models.surrogates import SurrogateJoiner
from holdfast.models.translate import MalformedReply, from_library, parameters, to_library

_ASKING_AGAIN = "\n[the connection broke; asking again]\n"
_BYTES_PER_TOKEN = 4
_Result = TypeVar("_Result")


class ProviderModel:
    """One model of one provider. It owns its HTTP client, and with it the key."""

    def __init__(
        self,
        spec: ModelSpec,
        *,
        library: LibraryModel,
        client: httpx2.AsyncClient,
        settings: ModelSettings,
        key: str | None,
        patience: RetryPolicy,
    ) -> None:
        self._spec, self._library, self._client = spec, library, client
        self._settings, self.key, self._patience = settings, key, patience

    @property
    def name(self) -> str:
        return str(self._spec)

    @property
    def context_tokens(self) -> int | None:
        return self._settings.context_tokens or context_tokens(self._spec)

    async def ask(self, prompt: Prompt, on_text: OnText) -> Reply:
        paid: list[Usage] = []
        try:
            return await self._patience.within(self._until_answered(prompt, on_text, paid))
        except TimeoutError:
            raise ModelUnavailable(
                f"{self._spec} did not finish within {pluralize(self._patience.total_seconds, 'second')}",
                hint="raise total_seconds in the configuration, or ask for less at once",
                usage=_total(paid),
            ) from None

    async def close(self) -> None:
        await self._client.aclose()

    async def _until_answered(self, prompt: Prompt, on_text: OnText, paid: list[Usage]) -> Reply:
        since = self._patience.started()
        shown = _Shown(on_text)
        for attempt in itertools.count(1):
            try:
                message, finish = await self._attempt(prompt, shown, paid)
            except PROVIDER_ERRORS as error:
                failure = classify(error, self._spec, key=self.key)
            else:
                return Reply(message=message, usage=_total(paid) or Usage(), finish=finish)
            is_worth_it = failure.is_transient and await self._patience.wait(
                attempt, since=since, retry_after=failure.retry_after
            )
            if not is_worth_it:
                # Without the cause: the library's errors carry the bodies of requests and answers.
                raise failure.error(_total(paid)) from None
            if shown.size:
                on_text(_ASKING_AGAIN)
        raise AssertionError("unreachable: counting does not end")

    async def _attempt(
        self, prompt: Prompt, shown: "_Shown", paid: list[Usage]
    ) -> tuple[ModelMessage, Finish]:
        """Ask once. What was counted goes to `paid`, whether a reply came of it or not."""
        async with AsyncExitStack() as stack:
            stream = await _guarded(
                stack.enter_async_context(
                    model_request_stream(
                        self._library,
                        to_library(prompt, self._spec.provider),
                        model_settings=self._request_settings(prompt),
                        model_request_parameters=parameters(prompt),
                    )
                )
            )
            size = 0
            try:
                async for text, size in _read(stream):
                    shown.show(text)
                    if size > self._settings.max_reply_bytes:
                        raise ReplyTooLong
            finally:
                # Closes the connection of a stream that was not read to its end; a cancelled turn ends here.
                await stream.cancel()
                paid.append(self._usage(stream.usage, prompt, size))
            return from_library(stream.get(), self._spec.provider)

    def _request_settings(self, prompt: Prompt) -> LibrarySettings:
        ours = self._settings
        asked = LibrarySettings(max_retries=0, timeout=ours.total_seconds, cache=True)
        if (most := prompt.max_tokens or ours.max_tokens) is not None:
            asked["max_tokens"] = most
        if ours.temperature is not None:
            asked["temperature"] = ours.temperature
        if ours.thinking is not None:
            asked["thinking"] = ours.thinking
        return asked

    def _usage(self, told: RequestUsage, prompt: Prompt, size: int) -> Usage:
        if not told.input_tokens and not told.output_tokens:
            # A stream that broke off before it was counted was paid for as well: better too much than nothing.
            told = RequestUsage(
                input_tokens=prompt.size_bytes // _BYTES_PER_TOKEN, output_tokens=size // _BYTES_PER_TOKEN
            )
        return Usage(
            input_tokens=told.input_tokens,
            output_tokens=told.output_tokens,
            cached_tokens=told.cache_read_tokens,
            cost_usd=price_of_request(self._spec, told),
        )


class _Shown:
    """Passes text on and counts it."""

    def __init__(self, on_text: OnText) -> None:
        self._joined = SurrogateJoiner(on_text)
        self.size = 0

    def show(self, text: str) -> None:
        if text:
            self.size += len(text)
            self._joined.add(text)


async def _read(stream: StreamedResponse) -> AsyncIterator[tuple[str, int]]:
    """The words of a stream as they come, and how long it has become, thoughts and arguments included."""
    events = aiter(stream)
    size = 0
    while (event := await _guarded(anext(events, None))) is not None:
        words = ""
        match event:
            case (
                PartStartEvent(part=TextPart(content=text))
                | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
            ):
                if not isinstance(text, str):  # the library hands on what the provider sent
                    raise MalformedReply("a piece of text is no text")
                words = text
                size += len(text)
            case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str(text))):
                size += len(text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                size += len(text)
            case _:
                pass
        yield words, size


async def _guarded(work: Awaitable[_Result]) -> _Result:
    """What the library makes of the provider's bytes. Bytes that it stumbles over are a malformed reply."""
    try:
        return await work
    except PROVIDER_ERRORS:
        raise
    except Exception as error:
        raise MalformedReply(f"it was not understood ({type(error).__name__})") from None


def _total(paid: list[Usage]) -> Usage | None:
    """The sum of all attempts; a price that is unknown for one is unknown for all."""
    if not paid:
        return None
    costs = [usage.cost_usd for usage in paid]
    known = [cost for cost in costs if cost is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in paid),
        output_tokens=sum(usage.output_tokens for usage in paid),
        cached_tokens=sum(usage.cached_tokens for usage in paid),
        cost_usd=sum(known, Decimal(0)) if len(known) == len(costs) else None,
    )
