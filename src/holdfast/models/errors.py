"""Failures: what a provider's error means for us, and whether asking again can help.

Texts of providers may quote a key or a prompt; of them only the provider's own sentence is kept, short and without the key.
"""

from typing import TYPE_CHECKING

import httpx2
from pydantic_ai import exceptions as library

from holdfast.core import Usage, Value
from holdfast.core.errors import ContextExceeded, ModelError, ModelRefused, ModelUnavailable
from holdfast.models.specs import ModelSpec
from holdfast.models.translate import MalformedReply

if TYPE_CHECKING:
    from collections.abc import Mapping

TRANSPORT_ERRORS = (httpx2.TransportError, httpx2.StreamError, ConnectionError)
PROVIDER_ERRORS = (
    library.ModelAPIError,
    library.UnexpectedModelBehavior,
    library.UserError,
    MalformedReply,
    *TRANSPORT_ERRORS,
)
"""All that one attempt may raise because of the provider or the road to it."""

_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
_OVERFLOW_WORDS = (
    "context length",
    "context window",
    "context size",
    "context_length",
    "exceed_context_size",
    "too many tokens",
    "prompt is too long",
)
_LONGEST_SENTENCE = 300
_COMPACT_HINT = "use /compact to summarise older turns, /fork from an earlier one, or start a new session"


class ReplyTooLong(MalformedReply):
    """The reply grew past its bound. Asking again would only pay for it again."""


class Failure(Value):
    """A failed attempt: the error to raise if it was the last, and whether another is worth it."""

    message: str
    hint: str
    kind: type[ModelError]
    is_transient: bool = False
    retry_after: float | None = None

    def error(self, usage: Usage | None) -> ModelError:
        """What to raise, with what was paid."""
        return self.kind(self.message, hint=self.hint, usage=usage)


def classify(error: BaseException, spec: ModelSpec, *, key: str | None) -> Failure:
    """What an error of the provider or the road to it means."""
    where = _place(error)
    said = _sentence(error, key)
    if isinstance(error, library.ModelContextWindowExceededError) or _is_overflow(error, said):
        return Failure(
            message=f"Context window exceeded: {spec}{said}", hint=_COMPACT_HINT, kind=ContextExceeded
        )
    match error:
        case library.ModelAuthenticationError():
            return _refused(f"{spec} refused the key{where}", "check the key, and that it may use this model")
        case library.ModelNotFoundError():
            near = getattr(error, "suggested_model_id", None)
            hint = f"did you mean {near}?" if near else "look at `holdfast model list`, and at base_url"
            return _refused(f"there is no {spec}{where}", hint)
        case library.ModelQuotaExceededError():
            return _refused(
                f"the account for {spec} is used up{where}{said}", "add credit, or choose another model"
            )
        case library.ModelRequestRejectedError():
            return _refused(
                f"{spec} rejected the request{where}{said}", "choose another model, or report this"
            )
        case library.ModelAPIError() if _is_transient(error):
            return _unavailable(f"{spec} did not answer{where}{said}", retry_after=error.retry_after)
        case library.ModelAPIError():
            return _refused(
                f"{spec} rejected the request{where}{said}", "choose another model, or report this"
            )
        case library.ContentFilterError():
            return _refused(f"{spec} declined to answer", "say it in another way, or choose another model")
        case ReplyTooLong():
            hint = "ask for less at once, or raise max_reply_bytes in the configuration"
            return Failure(message=f"the reply of {spec} does not end", hint=hint, kind=ModelUnavailable)
        case library.UserError():
            return _refused(
                f"{spec} cannot be asked this: {_first_line(error, key)}",
                "choose another model, or report this",
            )
        case library.UnexpectedModelBehavior() | MalformedReply():
            return _unavailable(f"{spec} sent a reply that cannot be read: {_first_line(error, key)}")
        case _:
            return _unavailable(f"the connection to {spec} broke: {type(error).__name__}")


def _refused(message: str, hint: str) -> Failure:
    return Failure(message=message, hint=hint, kind=ModelRefused)


def _unavailable(message: str, *, retry_after: float | None = None) -> Failure:
    hint = "try again in a while; nothing that was done is lost"
    return Failure(
        message=message, hint=hint, kind=ModelUnavailable, is_transient=True, retry_after=retry_after
    )


def _is_transient(error: library.ModelAPIError) -> bool:
    status = getattr(error, "status_code", None)
    # Without a status the provider did not judge the request: the road broke, or the answer could not be read.
    return status is None or status >= 500 or status in _TRANSIENT_STATUSES


def _is_overflow(error: BaseException, said: str) -> bool:
    status = getattr(error, "status_code", None)
    return status in (400, 413) and any(word in said.lower() for word in _OVERFLOW_WORDS)


def _place(error: BaseException) -> str:
    status = getattr(error, "status_code", None)
    return f" (HTTP {status})" if isinstance(status, int) else ""


def _sentence(error: BaseException, key: str | None) -> str:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    said = _message(inner) if isinstance(inner, dict) else ""
    return f": {_without(key, said)[:_LONGEST_SENTENCE]}" if said else ""


def _message(body: "Mapping[str, object]") -> str:
    said = body.get("message")
    return said.strip() if isinstance(said, str) else ""


def _first_line(error: BaseException, key: str | None) -> str:
    line = (str(error).splitlines() or ["no reason given"])[0]
    return _without(key, line)[:_LONGEST_SENTENCE]


def _without(key: str | None, text: str) -> str:
    return text.replace(key, "[key]") if key else text
