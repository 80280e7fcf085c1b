"""`Value`, the base of all value types: frozen, compared by content, with one JSON form.

Values are msgspec structs, not dataclasses, because the same class is the event in memory, the row in the journal and
the line in an export. msgspec reads and writes them typed, with tagged unions, in a few microseconds each.
"""

import codecs
import hashlib
import re
import secrets
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, dataclass_transform

import msgspec

VERSION = "0.1.0"
"""What programs that Holdfast talks to are told; `holdfast.__version__` is the same, written twice so that it loads nothing."""

if TYPE_CHECKING:
    Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
else:
    # Any at run time: msgspec reads annotations and does not support recursive aliases.
    Json = Any

JsonObject = dict[str, Json]
MAX_DEPTH = 64
"""How deep lists and objects can be nested: far deeper than legitimate data, and safe for every reader."""

_NESTING = (dict, list)


class _ValueMeta(msgspec.StructMeta):
    """Makes every value frozen and its fields keyword-only; msgspec does not inherit kw_only.

    Values cannot form reference cycles, so the garbage collector need not track them; a long history has many.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        options: dict[str, Any] = {"frozen": True, "kw_only": True, "omit_defaults": True, "gc": False}
        return super().__new__(cls, name, bases, namespace, **(options | config))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, metaclass=_ValueMeta):
    """Base of everything that is recorded, compared or passed between packages."""


encode: Callable[[object], bytes] = msgspec.json.Encoder().encode
"""Encode a value to JSON, as it is stored."""


def is_too_deep(value: Json) -> bool:
    """Whether lists and objects are nested deeper than `MAX_DEPTH`. Not recursive, because the input can be hostile."""
    level = [value] if isinstance(value, _NESTING) else []
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, _NESTING)
        ]
        if not level:
            return False
    return True


def texts_in(value: Json) -> Iterator[str]:
    """The texts in a value, at any depth. Not recursive."""
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case list(items):
                waiting += items
            case dict(members):
                waiting += members.values()
            case _:
                pass


def scalars_in(value: Json) -> Iterator[str]:
    """The texts, numbers and truth values in a value, and the keys of objects, as texts."""
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case None:
                pass
            case bool(truth):
                yield str(truth).lower()
            case list(items):
                waiting += items
            case dict(members):
                waiting += [*members, *members.values()]
            case scalar:
                yield str(scalar)


def text_bytes(value: Json, *, is_json: bool = False) -> int:
    """The bytes of all texts in a value, as UTF-8 or as JSON. Not recursive, and without a copy of a large text."""
    waiting, count = [value], 0
    while waiting:
        match waiting.pop():
            case str(text):
                if is_json:
                    count += _json_length(text)
                else:
                    count += len(text) if text.isascii() else _encoded_length(text)
            case list(parts):
                waiting += parts
            case dict(fields):
                waiting += fields.keys()
                waiting += fields.values()
            case _:
                pass
    return count


def text_memory(content: bytes) -> int:
    """The bytes of memory that UTF-8 takes as text: 1, 2 or 4 for each character, as the widest one needs. Raises UnicodeDecodeError.

    It is decoded in pieces, to find out.
    """
    if content.isascii():
        return len(content)
    decoder, characters, width = codecs.getincrementaldecoder("utf-8")(), 0, 1
    for start in range(0, len(content), _PIECE):
        piece = content[start : start + _PIECE]
        characters += len(decoder.decode(piece))
        if width < 4 and (wide := piece.translate(None, _NARROW)):
            width = 4 if wide.translate(None, _TWO_BYTES_WIDE) else 2
    decoder.decode(b"", final=True)
    return width * characters


def max_text_memory(value_bytes: int) -> int:
    """What the texts of one call may take in memory, where its values may have this many bytes as UTF-8."""
    return value_bytes // 4 * 7


def _encoded_length(text: str) -> int:
    return sum(
        len(text[at : at + _PIECE].encode("utf-8", "surrogatepass")) for at in range(0, len(text), _PIECE)
    )


def _json_length(text: str) -> int:
    return sum(len(encode(text[at : at + _PIECE])) for at in range(0, len(text), _PIECE))


_PIECE = 1 << 20
_NARROW, _TWO_BYTES_WIDE = bytes(range(0xC4)), bytes(range(0xC4, 0xF0))
"""Bytes of UTF-8 that are not the first of a character beyond Latin-1; and first ones of characters that take two bytes in memory."""

canonical: Callable[[object], bytes] = msgspec.json.Encoder(order="deterministic").encode
"""Encode a value to JSON that is equal exactly if the values are: sorted keys, no white space."""


def digest(value: object) -> str:
    """The SHA-256 of the canonical JSON of a value, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def digest_call(operation: str, arguments: JsonObject) -> str:
    """The digest of `[operation, arguments]`, without a copy of large texts among the arguments."""
    large = {name: each for name, each in arguments.items() if isinstance(each, str) and len(each) > _PIECE}
    if not large:
        return digest([operation, arguments])
    marks = {secrets.token_hex(16).encode(): text for text in large.values()}
    marked = arguments | {name: mark.decode() for name, mark in zip(large, marks, strict=True)}
    hashed = hashlib.sha256()
    for part in re.split(b"(" + b"|".join(marks) + b")", canonical([operation, marked])):
        text = marks.get(part)
        if text is None:
            hashed.update(part)
        else:
            for at in range(0, len(text), _PIECE):
                hashed.update(
                    canonical(text[at : at + _PIECE])[1:-1]
                )  # JSON escapes each character by itself
    return hashed.hexdigest()


def digest_bytes(content: bytes) -> str:
    """The SHA-256 of bytes, in hex: the name of a blob."""
    return hashlib.sha256(content).hexdigest()
