"""Classification of provider errors: which of our errors each becomes, and whether a retry can help.

A provider's error may quote a key or a prompt. We keep only the provider's own message, shortened and with the key
redacted.
"""

import socket
from typing import TYPE_CHECKING

import httpx2
import msgspec
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
"""Everything that one attempt can raise because of the provider or the network."""

_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
_OVERFLOW_PHRASES = (
    "context length",
    "context window",
    "context size",
    "context_length",
    "exceed_context_size",
    "too many tokens",
    "prompt is too long",
)
_MAX_MESSAGE_LENGTH = 300
_COMPACT_HINT = "use /compact to summarise older turns, /fork from an earlier one, or start a new session"


class ReplyTooLong(MalformedReply):
    """The reply exceeds its size limit. A retry would only be charged again."""


class Failure(Value):
    """A failed attempt: the error to raise if it was the last one, and whether a retry can help."""

    message: str
    hint: str
    kind: type[ModelError]
    is_transient: bool = False
    retry_after_seconds: float | None = None

    def error(self, usage: Usage | None) -> ModelError:
        """The error to raise, with what the attempts cost."""
        return self.kind(self.message, hint=self.hint, usage=usage)


def classify(error: BaseException, spec: ModelSpec, *, key: str | None) -> Failure:
    """Classify an error of the provider or the network."""
    status = _status_suffix(error)
    reason = _provider_message(error, key)
    if isinstance(error, library.ModelContextWindowExceededError) or _is_overflow(error, reason):
        return Failure(
            message=f"Context window exceeded: {spec}{reason}", hint=_COMPACT_HINT, kind=ContextExceeded
        )
    match error:
        case library.ModelAuthenticationError():
            return _refused(
                f"{spec} refused the API key{status}", "check the key, and that it may use this model"
            )
        case library.ModelNotFoundError():
            suggestion = getattr(error, "suggested_model_id", None)
            hint = (
                f"did you mean {suggestion}?" if suggestion else "check `holdfast model list`, and base_url"
            )
            return _refused(f"there is no {spec}{status}", hint)
        case library.ModelQuotaExceededError():
            return _refused(
                f"the account for {spec} has no credit left{status}{reason}",
                "add credit, or choose another model",
            )
        case library.ModelRequestRejectedError():
            return _refused(
                f"{spec} rejected the request{status}{reason}", "choose another model, or report this"
            )
        case library.ModelConnectionError() if network := _network_reason(error):
            return msgspec.structs.replace(
                _unavailable(f"{spec} cannot be reached: {network}"),
                hint="check the network, and the address if you set one; no completed work is lost",
            )
        case library.ModelAPIError() if _is_transient(error):
            return _unavailable(
                f"{spec} did not answer{status}{reason}", retry_after_seconds=error.retry_after
            )
        case library.ModelAPIError():
            return _refused(
                f"{spec} rejected the request{status}{reason}", "choose another model, or report this"
            )
        case library.ContentFilterError():
            return _refused(f"{spec} declined to answer", "rephrase the request, or choose another model")
        case ReplyTooLong():
            hint = "ask for less at once, or holdfast config set model_requests.max_reply_bytes 8000000"
            return Failure(
                message=f"the reply of {spec} is longer than max_reply_bytes",
                hint=hint,
                kind=ModelUnavailable,
            )
        case library.UserError():
            return _refused(
                f"{spec} does not support this request: {_first_line(error, key)}",
                "choose another model, or report this",
            )
        case library.UnexpectedModelBehavior() | MalformedReply():
            return _unavailable(f"{spec} sent a malformed reply: {_first_line(error, key)}")
        case _:
            return _unavailable(f"the connection to {spec} broke: {type(error).__name__}")


def _refused(message: str, hint: str) -> Failure:
    return Failure(message=message, hint=hint, kind=ModelRefused)


def _unavailable(message: str, *, retry_after_seconds: float | None = None) -> Failure:
    hint = "try again later; no completed work is lost"
    return Failure(
        message=message,
        hint=hint,
        kind=ModelUnavailable,
        is_transient=True,
        retry_after_seconds=retry_after_seconds,
    )


def _is_transient(error: library.ModelAPIError) -> bool:
    status = getattr(error, "status_code", None)
    # Without a status the provider did not reject the request: the connection broke, or the reply was malformed.
    return status is None or status >= 500 or status in _TRANSIENT_STATUSES


def _is_overflow(error: BaseException, message: str) -> bool:
    status = getattr(error, "status_code", None)
    return status in (400, 413) and any(phrase in message.lower() for phrase in _OVERFLOW_PHRASES)


def _network_reason(error: BaseException) -> str:
    """Why no connection was made, from the error of the system below the library's; empty if there is none."""
    below: BaseException | None = error
    while below is not None:
        match below:
            case socket.gaierror():
                return "its host name was not found"
            case ConnectionRefusedError():
                return "nothing answers at its address"
            case OSError() if below.errno and below.strerror:
                return below.strerror
            case _:
                below = below.__cause__ or below.__context__
    return ""


def _status_suffix(error: BaseException) -> str:
    status = getattr(error, "status_code", None)
    return f" (HTTP {status})" if isinstance(status, int) else ""


def _provider_message(error: BaseException, key: str | None) -> str:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    message = _message(inner) if isinstance(inner, dict) else ""
    return f": {_redact(key, message)[:_MAX_MESSAGE_LENGTH]}" if message else ""


def _message(body: "Mapping[str, object]") -> str:
    message = body.get("message")
    return message.strip() if isinstance(message, str) else ""


def _first_line(error: BaseException, key: str | None) -> str:
    line = (str(error).splitlines() or ["no reason given"])[0]
    return _redact(key, line)[:_MAX_MESSAGE_LENGTH]


def _redact(key: str | None, text: str) -> str:
    return text.replace(key, "[key]") if key else text
