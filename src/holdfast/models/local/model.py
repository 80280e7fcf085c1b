"""A GGUF file as a model: shapes the request, shows the answer as it grows, reads the call."""

from decimal import Decimal
from pathlib import Path

from holdfast.core import (
    Finish,
    Json,
    JsonObject,
    ModelMessage,
    Part,
    TextPart,
    ToolCallPart,
    Usage,
    pluralize,
)
from holdfast.core.errors import ContextExceeded, ModelRefused, ModelUnavailable
from holdfast.models.contract import OnText, Prompt, Reply
from holdfast.models.local.grammar import arguments_of, request
from holdfast.models.local.process import LocalProcess
from holdfast.models.retry import RetryPolicy
from holdfast.models.specs import ModelSettings

DEFAULT_CONTEXT_TOKENS = 8192
DEFAULT_MAX_TOKENS = 1024


class LocalModel:
    """A model in a child process of ours. One reply at a time, one call a reply, and it costs nothing."""

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        settings: ModelSettings,
        patience: RetryPolicy,
        engine_path: Path | None = None,
    ) -> None:
        self._name, self._settings, self._patience = name, settings, patience
        self._process = LocalProcess(
            path,
            context_tokens=self.context_tokens,
            threads=settings.local_threads,
            engine_path=engine_path,
        )

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int:
        return self._settings.context_tokens or DEFAULT_CONTEXT_TOKENS

    async def ask(self, prompt: Prompt, on_text: OnText) -> Reply:
        try:
            return await self._patience.within(self._ask(prompt, on_text))
        except TimeoutError:
            raise ModelUnavailable(
                f"{self._name} did not finish within {pluralize(self._patience.total_seconds, 'second')}",
                hint="raise total_seconds in the configuration, or ask for less at once",
            ) from None

    async def close(self) -> None:
        await self._process.close()

    async def _ask(self, prompt: Prompt, on_text: OnText) -> Reply:
        asked = request(
            prompt,
            max_tokens=prompt.max_tokens or self._settings.max_tokens or DEFAULT_MAX_TOKENS,
            temperature=self._settings.temperature or 0.0,
        )
        growing = _Growing(is_shaped=bool(prompt.tools), on_text=on_text)
        chunks = self._process.chunks(asked)
        try:
            async for chunk in chunks:
                if "error" in chunk:
                    raise self._error(chunk["error"])
                growing.take(chunk)
                if len(growing.text) > self._settings.max_reply_bytes:
                    raise ModelUnavailable(
                        f"the reply of {self._name} does not end", hint="ask for less at once"
                    )
        finally:
            await chunks.aclose()
        return growing.reply(prompt)

    def _error(self, error: Json) -> ContextExceeded | ModelRefused:
        told = error if isinstance(error, dict) else {}
        said = str(told.get("message", "no reason given"))[:300]
        if told.get("type") == "exceed_context_size_error":
            return ContextExceeded(
                f"Context window exceeded: {self._name}: {said}",
                hint="use /compact to summarise older turns, /fork from an earlier one, or start a new session",
            )
        return ModelRefused(
            f"{self._name} rejected the request: {said}", hint="report this, or use another model"
        )


class _Growing:
    """A reply while it comes in."""

    def __init__(self, *, is_shaped: bool, on_text: OnText) -> None:
        self._is_shaped, self._on_text = is_shaped, on_text
        self.text = ""
        self._shown = ""
        self._finish: str | None = None
        self._usage = Usage(cost_usd=Decimal(0))

    def take(self, chunk: JsonObject) -> None:
        """One piece of a streamed chat completion."""
        choices = chunk.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            delta = choices[0].get("delta")
            if isinstance(delta, dict) and isinstance(content := delta.get("content"), str):
                self.text += content
                self._show()
            if isinstance(finish := choices[0].get("finish_reason"), str):
                self._finish = finish
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = _usage(usage)

    def reply(self, prompt: Prompt) -> Reply:
        """What it has become."""
        if self._finish is None:
            raise ModelUnavailable("the local model stopped in mid-reply", hint="ask again")
        parts, finish = self._parts(prompt)
        return Reply(message=ModelMessage(parts=parts), usage=self._usage, finish=finish)

    def _parts(self, prompt: Prompt) -> tuple[tuple[Part, ...], Finish]:
        ended: Finish = "length" if self._finish == "length" else "stop"
        said = self._said()
        if "tool" in said and ended != "length":
            tool, arguments = said["tool"], said.get("arguments")
            if isinstance(tool, str) and isinstance(arguments, dict):
                place = sum(isinstance(message, ModelMessage) for message in prompt.messages)
                taken = arguments_of(tool, arguments, prompt.tools)
                return (ToolCallPart(id=f"call-{place + 1}", tool=tool, arguments=taken),), "tool-calls"
        # Half a call is no call; half an answer is an answer that ended too soon.
        return ((TextPart(text=self._shown),) if self._shown else ()), ended

    def _show(self) -> None:
        answer = self._said().get("answer")
        if isinstance(answer, str) and len(answer) > len(self._shown):
            self._on_text(answer[len(self._shown) :])
            self._shown = answer

    def _said(self) -> JsonObject:
        if not self._is_shaped:
            return {"answer": self.text}
        from pydantic_core import from_json

        try:
            said = from_json(self.text, allow_partial="trailing-strings")
        except ValueError:
            return {}
        return said if isinstance(said, dict) else {}


def _usage(told: JsonObject) -> Usage:
    details = told.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    numbers = [told.get("prompt_tokens"), told.get("completion_tokens"), cached]
    given, made, kept = (number if isinstance(number, int) else 0 for number in numbers)
    return Usage(input_tokens=given, output_tokens=made, cached_tokens=kept, cost_usd=Decimal(0))
