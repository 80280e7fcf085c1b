"""Calls of a guest in another process as JSON: what it asks for, and what it is answered. The WASI and system engines share it."""

from typing import Annotated

import msgspec

from holdfast.core import Answer, Failed, Json, Returned, Value, encode, text_bytes

MIN_MESSAGE_BYTES = 32 << 20
"""Enough for the saved variables or the result of a run, whatever a call may carry."""


class CallRequest(Value):
    """The shape that a call of the guest must have."""

    operation: Annotated[str, msgspec.Meta(max_length=1000)]
    arguments: dict[str, Json]


class CallLimit(Value, tag_field="kind", tag="limit"):
    """An answer: the guest may make no more calls."""

    reason: str


_DECODER = msgspec.json.Decoder(CallRequest)


def max_message_bytes(value_bytes: int) -> int:
    """The largest message between host and guest, if this is the largest value of a call: with escapes, and what is around it."""
    return max(MIN_MESSAGE_BYTES, value_bytes + value_bytes // 4)


def parse_call(request: str | msgspec.Raw) -> CallRequest | None:
    """The call, or None if it does not have the required shape."""
    try:
        return _DECODER.decode(request)
    except (msgspec.MsgspecError, RecursionError):
        return None


def encode_answer(answer: Answer | CallLimit, *, max_bytes: int) -> bytes:
    """The JSON of an answer. An answer that is too large becomes an error in the guest."""
    # Measured first: JSON takes up to six times the memory of a text.
    if isinstance(answer, Returned) and text_bytes(answer.value, is_json=True) > max_bytes:
        reason = (
            f"the result of this call has more than {max_bytes >> 20} MB as JSON; ask for less at a time, such as a part of a file "
            "with offset and length"
        )
        answer = Failed(error="ValueError", reason=reason)
    return encode(answer)
