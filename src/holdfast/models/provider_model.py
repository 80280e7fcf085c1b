"""`ProviderModel`: a provider's model over HTTP, through pydantic-ai. `DeferredModel` imports this module when it is needed."""

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

_RETRY_NOTICE = "\n[the connection broke; retrying]\n"
_BYTES_PER_TOKEN = 4
MAX_REPORTED_TOKENS = 10**9
"""No reply has more tokens; a larger number is not a count."""
_Result = TypeVar("_Result")


class ProviderModel:
    """One model of one provider. It owns its HTTP client, which holds the API key."""

    def __init__(
        self,
        spec: ModelSpec,
        *,
        library: LibraryModel,
        client: httpx2.AsyncClient,
        settings: ModelSettings,
        key: str | None,
        retry_policy: RetryPolicy,
    ) -> None:
        self._spec, self._library, self._client = spec, library, client
        self._settings, self.key, self._retry_policy = settings, key, retry_policy

    @property
    def name(self) -> str:
        return str(self._spec)

    @property
    def context_tokens(self) -> int | None:
        return self._settings.context_tokens or context_tokens(self._spec)

    async def ask(self, prompt: Prompt, on_text: OnText) -> Reply:
        paid: list[Usage] = []
        try:
            return await self._retry_policy.run(self._ask_with_retries(prompt, on_text, paid))
        except TimeoutError:
            raise ModelUnavailable(
                f"{self._spec} did not finish within {pluralize(self._retry_policy.timeout_seconds, 'second')}",
                hint="holdfast config set model_requests.timeout_seconds 1200, or ask for less at once",
                usage=_total(paid),
            ) from None

    async def close(self) -> None:
        await self._client.aclose()

    async def _ask_with_retries(self, prompt: Prompt, on_text: OnText, paid: list[Usage]) -> Reply:
        started = self._retry_policy.start()
        shown = _ShownText(on_text)
        for attempt in itertools.count(1):
            try:
                message, finish = await self._attempt(prompt, shown, paid)
            except PROVIDER_ERRORS as error:
                failure = classify(error, self._spec, key=self.key)
            else:
                return Reply(message=message, usage=_total(paid) or Usage(), finish=finish)
            can_retry = failure.is_transient and await self._retry_policy.wait(
                attempt, started=started, retry_after_seconds=failure.retry_after_seconds
            )
            if not can_retry:
                # No cause: the library's errors contain the bodies of requests and responses.
                raise failure.error(_total(paid)) from None
            if shown.size:
                on_text(_RETRY_NOTICE)
        raise AssertionError("unreachable: itertools.count never ends")

    async def _attempt(
        self, prompt: Prompt, shown: "_ShownText", paid: list[Usage]
    ) -> tuple[ModelMessage, Finish]:
        """Send the request once. Its usage is added to `paid`, with or without a reply."""
        async with AsyncExitStack() as stack:
            stream = await _malformed_if_unexpected(
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
                # Closes the connection if the stream was not read to its end, for example when the turn is cancelled.
                await stream.cancel()
                paid.append(self._usage(stream.usage, prompt, size))
            return from_library(stream.get(), self._spec.provider)

    def _request_settings(self, prompt: Prompt) -> LibrarySettings:
        ours = self._settings
        settings = LibrarySettings(max_retries=0, timeout=ours.timeout_seconds, cache=True)
        if (max_tokens := prompt.max_tokens or ours.max_tokens) is not None:
            settings["max_tokens"] = max_tokens
        if ours.temperature is not None:
            settings["temperature"] = ours.temperature
        if ours.thinking is not None:
            settings["thinking"] = ours.thinking
        return settings

    def _usage(self, reported: RequestUsage, prompt: Prompt, size: int) -> Usage:
        counts = (reported.input_tokens, reported.output_tokens, reported.cache_read_tokens)
        if not any(counts[:2]) or not all(map(_is_count, counts)):
            # A server may report half a token, or more than there can be; the library does not check.
            # A stream that broke before it reported its usage was charged too. An estimate is better than nothing.
            reported = RequestUsage(
                input_tokens=prompt.size_bytes // _BYTES_PER_TOKEN, output_tokens=size // _BYTES_PER_TOKEN
            )
        return Usage(
            input_tokens=reported.input_tokens,
            output_tokens=reported.output_tokens,
            cached_tokens=reported.cache_read_tokens,
            cost_usd=price_of_request(self._spec, reported),
        )


def _is_count(tokens: object) -> bool:
    return isinstance(tokens, int) and 0 <= tokens <= MAX_REPORTED_TOKENS


class _ShownText:
    """Passes text to `on_text` and counts it."""

    def __init__(self, on_text: OnText) -> None:
        self._joiner = SurrogateJoiner(on_text)
        self.size = 0

    def show(self, text: str) -> None:
        if text:
            self.size += len(text)
            self._joiner.add(text)


async def _read(stream: StreamedResponse) -> AsyncIterator[tuple[str, int]]:
    """Each piece of text, and the size of the reply so far, including reasoning and arguments."""
    events = aiter(stream)
    size = 0
    while (event := await _malformed_if_unexpected(anext(events, None))) is not None:
        piece = ""
        match event:
            case (
                PartStartEvent(part=TextPart(content=text))
                | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
            ):
                if not isinstance(text, str):  # the library does not check what the provider sends
                    raise MalformedReply("a piece of text is not a string")
                piece = text
                size += len(text)
            case PartDeltaEvent(delta=ToolCallPartDelta(args_delta=str(text))):
                size += len(text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                size += len(text)
            case _:
                pass
        yield piece, size


async def _malformed_if_unexpected(work: Awaitable[_Result]) -> _Result:
    """Await work of the library. An unexpected exception means that it could not parse the provider's bytes."""
    try:
        return await work
    except PROVIDER_ERRORS:
        raise
    except Exception as error:
        raise MalformedReply(f"it could not be parsed ({type(error).__name__})") from None


def _total(paid: list[Usage]) -> Usage | None:
    """The sum over all attempts. If the cost of one is unknown, so is the total."""
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
