"""`LocalModel`: a GGUF file as a model. It builds the request, streams the answer and parses the tool call."""

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
from holdfast.models.contract import OnPiece, Prompt, Reply, ReplyPiece
from holdfast.models.local.grammar import join_code_lines, request
from holdfast.models.local.process import LocalProcess
from holdfast.models.retry import RetryPolicy
from holdfast.models.specs import ModelSettings

DEFAULT_CONTEXT_TOKENS = 8192
DEFAULT_MAX_TOKENS = 1024


class LocalModel:
    """A model in a child process. It makes one reply at a time with at most one tool call, and costs nothing."""

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        settings: ModelSettings,
        retry_policy: RetryPolicy,
        engine_path: Path | None = None,
    ) -> None:
        self._name, self._settings, self._retry_policy = name, settings, retry_policy
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

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        try:
            return await self._retry_policy.run(self._ask(prompt, on_piece))
        except TimeoutError:
            raise ModelUnavailable(
                f"{self._name} did not finish within {pluralize(self._retry_policy.timeout_seconds, 'second')}",
                hint="holdfast config set model_requests.timeout_seconds 1200, or ask for less at once",
            ) from None

    async def close(self) -> None:
        await self._process.close()

    async def _ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        body = request(
            prompt,
            max_tokens=prompt.max_tokens or self._settings.max_tokens or DEFAULT_MAX_TOKENS,
            temperature=self._settings.temperature or 0.0,
        )
        partial = _PartialReply(has_tools=bool(prompt.tools), on_piece=on_piece)
        chunks = self._process.chunks(body)
        try:
            async for chunk in chunks:
                if "error" in chunk:
                    raise self._error(chunk["error"])
                partial.add(chunk)
                if len(partial.text) > self._settings.max_reply_bytes:
                    raise ModelUnavailable(
                        f"the reply of {self._name} is longer than max_reply_bytes",
                        hint="ask for less at once",
                    )
        finally:
            await chunks.aclose()
        return partial.reply(prompt)

    def _error(self, error: Json) -> ContextExceeded | ModelRefused:
        details = error if isinstance(error, dict) else {}
        reason = str(details.get("message", "no reason given"))[:300]
        if details.get("type") == "exceed_context_size_error":
            return ContextExceeded(
                f"Context window exceeded: {self._name}: {reason}",
                hint="use /compact to summarise older turns, /fork from an earlier one, or start a new session",
            )
        return ModelRefused(
            f"{self._name} rejected the request: {reason}", hint="report this, or use another model"
        )


class _PartialReply:
    """A reply while it streams in."""

    def __init__(self, *, has_tools: bool, on_piece: OnPiece) -> None:
        self._has_tools, self._on_piece = has_tools, on_piece
        self.text = ""
        self._shown = ""
        self._finish: str | None = None
        self._usage = Usage(cost_usd=Decimal(0))

    def add(self, chunk: JsonObject) -> None:
        """Add one piece of a streamed chat completion."""
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
        """The complete reply."""
        if self._finish is None:
            raise ModelUnavailable(
                "the local model stopped in the middle of a reply", hint="send the message again"
            )
        parts, finish = self._parts(prompt)
        return Reply(message=ModelMessage(parts=parts), usage=self._usage, finish=finish)

    def _parts(self, prompt: Prompt) -> tuple[tuple[Part, ...], Finish]:
        ended: Finish = "length" if self._finish == "length" else "stop"
        parsed = self._parsed()
        if "tool" in parsed and ended != "length":
            tool, arguments = parsed["tool"], parsed.get("arguments")
            if isinstance(tool, str) and isinstance(arguments, dict):
                position = sum(isinstance(message, ModelMessage) for message in prompt.messages)
                arguments = join_code_lines(tool, arguments, prompt.tools)
                return (
                    ToolCallPart(id=f"call-{position + 1}", tool=tool, arguments=arguments),
                ), "tool-calls"
        # An incomplete call is dropped; an incomplete answer is kept.
        return ((TextPart(text=self._shown),) if self._shown else ()), ended

    def _show(self) -> None:
        answer = self._parsed().get("answer")
        if isinstance(answer, str) and len(answer) > len(self._shown):
            self._on_piece(ReplyPiece(text=answer[len(self._shown) :]))
            self._shown = answer

    def _parsed(self) -> JsonObject:
        if not self._has_tools:
            return {"answer": self.text}
        from pydantic_core import from_json

        try:
            parsed = from_json(self.text, allow_partial="trailing-strings")
        except ValueError:
            return {}
        return parsed if isinstance(parsed, dict) else {}


def _usage(reported: JsonObject) -> Usage:
    details = reported.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    numbers = [reported.get("prompt_tokens"), reported.get("completion_tokens"), cached]
    input_tokens, output_tokens, cached_tokens = (
        number if isinstance(number, int) else 0 for number in numbers
    )
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens,
        cost_usd=Decimal(0),
    )
