"""Calls of a guest in another process as JSON: what it asks for, and what it is answered. The WASI and system engines share it."""

from typing import Annotated

import msgspec

from holdfast.core import Answer, Failed, Json, Value, encode

MAX_RESULT_BYTES = 256 << 20
"""The result of one call, as JSON. More is an error in the guest."""


class CallRequest(Value):
    """The shape that a call of the guest must have."""

    operation: Annotated[str, msgspec.Meta(max_length=1000)]
    arguments: dict[str, Json]


class CallLimit(Value, tag_field="kind", tag="limit"):
    """An answer: the guest may make no more calls."""

    reason: str


_DECODER = msgspec.json.Decoder(CallRequest)


def parse_call(request: str) -> CallRequest | None:
    """The call, or None if it does not have the required shape."""
    try:
        return _DECODER.decode(request)
    except (msgspec.MsgspecError, RecursionError):
        return None


def encode_answer(answer: Answer | CallLimit) -> str:
    """The JSON of an answer. An answer that is too large becomes an error in the guest."""
    content = encode(answer)
    if len(content) > MAX_RESULT_BYTES:
        reason = f"the result of this call has more than {MAX_RESULT_BYTES >> 20} MB"
        content = encode(Failed(error="ValueError", reason=reason))
    return content.decode()
