"""`ProviderModel`: a provider's model over HTTP, through pydantic-ai. `DeferredModel` imports this module when it is needed."""

import itertools
import math
import warnings
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
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import StreamedResponse
from pydantic_ai.settings import ModelSettings as LibrarySettings
from pydantic_ai.usage import RequestUsage

from holdfast.core import Finish, ModelMessage, Usage, pluralize
from holdfast.core.errors import ModelUnavailable
from holdfast.models.contract import OnPiece, PieceKind, Prompt, Reply, ReplyPiece
from holdfast.models.errors import PROVIDER_ERRORS, ReplyTooLong, classify
from holdfast.models.prices import context_tokens, price_of_request
from holdfast.models.retry import RetryPolicy
from holdfast.models.specs import ModelSettings, ModelSpec
from holdfast.models.surrogates import SurrogateJoiner
from holdfast.models.translate import MalformedReply, from_library, parameters, to_library

# The library warns of parts of a reply that it does not know, in words of the provider, which are not for the terminal of a
# person; and Python remembers every such text as long as it runs.
warnings.filterwarnings("ignore", category=UserWarning, module=r"pydantic_ai\.models\.")

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

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        paid: list[Usage] = []
        try:
            return await self._retry_policy.run(self._ask_with_retries(prompt, on_piece, paid))
        except TimeoutError:
            raise ModelUnavailable(
                f"{self._spec} did not finish within {pluralize(self._retry_policy.timeout_seconds, 'second')}",
                hint="holdfast config set model_requests.timeout_seconds 1200, or ask for less at once",
                usage=_total(paid),
            ) from None

    async def close(self) -> None:
        await self._client.aclose()

    async def _ask_with_retries(self, prompt: Prompt, on_piece: OnPiece, paid: list[Usage]) -> Reply:
        started = self._retry_policy.start()
        for attempt in itertools.count(1):
            try:
                message, finish = await self._attempt(prompt, on_piece, paid)
            except PROVIDER_ERRORS as error:
                failure = classify(error, self._spec, key=self.key)
            else:
                return Reply(message=message, usage=_total(paid) or Usage(), finish=finish)
            delay = (
                self._retry_policy.delay(
                    attempt, started=started, retry_after_seconds=failure.retry_after_seconds
                )
                if failure.is_transient
                else None
            )
            if delay is None:
                # No cause: the library's errors contain the bodies of requests and responses.
                raise failure.error(_total(paid)) from None
            on_piece(
                ReplyPiece(
                    text=f"{failure.message}; attempt {attempt + 1} of {self._retry_policy.max_attempts} {_when(delay)}",
                    kind="retry",
                )
            )
            await self._retry_policy.sleep(delay)
        raise AssertionError("unreachable: itertools.count never ends")

    async def _attempt(
        self, prompt: Prompt, on_piece: OnPiece, paid: list[Usage]
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
            joiners = {kind: _joiner(kind, on_piece) for kind in _SHOWN_KINDS}
            try:
                async for kind, text, size in _read(stream):
                    if text:
                        joiners[kind].add(text)
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
        # A stream that broke before it reported its usage was charged too. An estimate is better than nothing.
        estimate = RequestUsage(
            input_tokens=prompt.size_bytes // _BYTES_PER_TOKEN, output_tokens=size // _BYTES_PER_TOKEN
        )
        # A server may report half a token, or more than there can be; the library does not check.
        if not any(counts[:2]) or not all(map(_is_count, counts)):
            reported = estimate
        try:
            cost_usd = price_of_request(self._spec, reported)
        except (ValueError, TypeError, ArithmeticError):  # counts that contradict each other have no price
            reported = estimate
            cost_usd = price_of_request(self._spec, reported)
        return Usage(
            input_tokens=reported.input_tokens,
            output_tokens=reported.output_tokens,
            cached_tokens=reported.cache_read_tokens,
            cost_usd=cost_usd,
        )


def _is_count(tokens: object) -> bool:
    return isinstance(tokens, int) and 0 <= tokens <= MAX_REPORTED_TOKENS


_SHOWN_KINDS: tuple[PieceKind, ...] = ("text", "thinking")


def _when(delay_seconds: float) -> str:
    return f"in {math.ceil(delay_seconds)} s" if delay_seconds > 0 else "now"


def _joiner(kind: PieceKind, on_piece: OnPiece) -> SurrogateJoiner:
    return SurrogateJoiner(lambda text: on_piece(ReplyPiece(text=text, kind=kind)))


async def _read(stream: StreamedResponse) -> AsyncIterator[tuple[PieceKind, str, int]]:
    """Each piece of text or reasoning, and the size of the reply so far, including arguments."""
    events = aiter(stream)
    size = 0
    while (event := await _malformed_if_unexpected(anext(events, None))) is not None:
        kind: PieceKind = "text"
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
            case (
                PartStartEvent(part=ThinkingPart(content=str(text)))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text)))
            ):
                kind, piece = "thinking", text
                size += len(text)
            case _:
                pass
        yield kind, piece, size


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
