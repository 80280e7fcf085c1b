"""Large results and arguments: the journal records a preview, and a blob holds the whole.

A journal keeps all of its events in memory, so an event must stay small. A text is a blob of its UTF-8 bytes, so it
shares the blob with a file of the same content; any other value is a blob of JSON.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec

from holdfast.core import BlobRef, Call, Escalation, Json, LargeArguments, digest_bytes, encode, is_too_deep
from holdfast.core.errors import JournalDamaged
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CallSettled,
    EscalationOpened,
    Event,
    RunEnded,
)
from holdfast.store import Redactor

MAX_INLINE_BYTES = 64 << 10
"""A larger value is recorded as a preview."""
MAX_VALUE_BYTES = 100_000
"""A larger value of a run is recorded as a note of its size."""
_HEAD_BYTES = 12 << 10
_TAIL_BYTES = 4 << 10

FetchBlob = Callable[[str], Awaitable[bytes]]
"""Loads a blob by its digest. Raises JournalDamaged."""


Kind = TypeVar("Kind")


class Recorded(NamedTuple, Generic[Kind]):
    """A value as the journal records it, and the blobs to append with it."""

    value: Kind
    blobs: Sequence[bytes] = ()


class LargeValues:
    """Replaces large values by previews and loads them again. Without `fetch_blob` every value is recorded inline."""

    def __init__(self, fetch_blob: FetchBlob | None, *, redactor: Redactor | None = None) -> None:
        self._fetch_blob = fetch_blob
        self._redactor = redactor or Redactor()

    def record_result(self, settled: CallSettled) -> Recorded[CallSettled]:
        """The event for the journal. The result is redacted already."""
        if self._fetch_blob is None or not _may_be_large(settled.result):
            return Recorded(settled)
        content = _content(settled.result)
        if len(content) <= MAX_INLINE_BYTES:
            return Recorded(settled)
        ref = _ref(content, settled.result)
        preview = preview_of(content, ref)
        return Recorded(msgspec.structs.replace(settled, result=preview, whole=ref), (content,))

    def record_value(self, value: Json) -> tuple[Json, BlobRef | None, Sequence[bytes]]:
        """The value of a run for the journal: itself or, if it is too large, a note of its size and the blob with the whole."""
        content = _content(value)
        if len(content) <= MAX_VALUE_BYTES:
            return value, None, ()
        if self._fetch_blob is None:
            return f"[a value of {len(content):,} bytes, too large to record]", None, ()
        content = self._redactor(content)
        ref = _ref(content, value)
        note = f"[a value of {ref.size:,} bytes, too large to show; `holdfast show --full` prints it: blob {ref.digest}]"
        return note, ref, (content,)

    def is_recorded_value(self, value: Json, ended: RunEnded) -> bool:
        """Whether a value is the one that the end of a run records."""
        if ended.whole is not None:
            return digest_bytes(self._redactor(_content(value))) == ended.whole.digest
        return LargeValues(None).record_value(value)[0] == ended.value  # an older journal has no blob

    def record_call(self, call: Call, digest: str) -> Recorded[Call]:
        """The call for the journal, with its known digest."""
        if self._fetch_blob is None or not any(map(_may_be_large, call.arguments.values())):
            return Recorded(call)
        arguments, refs, blobs = dict(call.arguments), dict[str, BlobRef](), list[bytes]()
        for name, value in call.arguments.items():
            if not _may_be_large(value):
                continue
            content = _content(value)
            if len(content) <= MAX_INLINE_BYTES:
                continue
            content = self._redactor(content)
            ref = _ref(content, value)
            arguments[name], refs[name] = preview_of(content, ref), ref
            blobs.append(content)
        if not refs:
            return Recorded(call)
        large = LargeArguments(blobs=refs, digest=digest)
        return Recorded(msgspec.structs.replace(call, arguments=arguments, large=large), blobs)

    async def whole_call(self, call: Call) -> Call:
        """A recorded call with all of its arguments. Raises JournalDamaged if a blob is missing."""
        if call.large is None:
            return call
        whole = {name: await self._load(ref) for name, ref in call.large.blobs.items()}
        return msgspec.structs.replace(call, arguments={**call.arguments, **whole}, large=None)

    async def whole_escalation(self, escalation: Escalation) -> Escalation:
        """An escalation with all of its call's arguments. Raises JournalDamaged if a blob is missing."""
        if escalation.call.large is None:
            return escalation
        return msgspec.structs.replace(escalation, call=await self.whole_call(escalation.call))

    async def whole_result(self, settled: CallSettled) -> CallSettled:
        """A recorded outcome with the whole result. Raises JournalDamaged if the blob is missing."""
        if settled.whole is None:
            return settled
        return msgspec.structs.replace(settled, result=await self._load(settled.whole))

    async def whole_event(self, event: Event) -> Event:
        """An event with the whole values in place of previews. Raises JournalDamaged if a blob is missing."""
        match event:
            case CallSettled():
                return await self.whole_result(event)
            case CallIntended() | CallRefused():
                return msgspec.structs.replace(event, call=await self.whole_call(event.call))
            case EscalationOpened():
                return msgspec.structs.replace(
                    event, escalation=await self.whole_escalation(event.escalation)
                )
            case RunEnded(whole=BlobRef() as ref):
                return msgspec.structs.replace(event, value=await self._load(ref))
            case _:
                return event

    async def _load(self, ref: BlobRef) -> Json:
        if self._fetch_blob is None:
            raise JournalDamaged(f"the blob {ref.digest!r} cannot be read without the store")
        return decode_blob(await self._fetch_blob(ref.digest), ref)


def decode_blob(content: bytes, ref: BlobRef) -> Json:
    """The value in a blob. Raises JournalDamaged."""
    damaged = JournalDamaged(f"the blob {ref.digest!r} is not the recorded value")
    try:
        value: Json = content.decode() if ref.format == "text" else msgspec.json.decode(content)
    except (ValueError, RecursionError):  # not UTF-8, not JSON, or nested without end
        raise damaged from None
    if is_too_deep(value):
        raise damaged
    return value


def preview_of(content: bytes, ref: BlobRef) -> str:
    """The start and the end of a large value, with a note of what is omitted and which blob has it."""
    head = content[:_HEAD_BYTES].decode(errors="ignore")
    tail = content[-_TAIL_BYTES:].decode(errors="ignore")
    omitted = len(content) - _HEAD_BYTES - _TAIL_BYTES
    return (
        f"{head}\n[... {omitted:,} of {ref.size:,} bytes omitted; the whole is blob {ref.digest} ...]\n{tail}"
    )


def _may_be_large(value: Json) -> bool:
    """Whether a value may exceed the inline size: cheap, and True for every list and object of some length."""
    match value:
        case str():
            return len(value) * 4 > MAX_INLINE_BYTES
        case list() | dict():
            return bool(value)
        case _:
            return False


def _content(value: Json) -> bytes:
    return value.encode() if isinstance(value, str) else encode(value)


def _ref(content: bytes, value: Json) -> BlobRef:
    kind: Literal["text", "json"] = "text" if isinstance(value, str) else "json"
    return BlobRef(digest=digest_bytes(content), size=len(content), format=kind)
