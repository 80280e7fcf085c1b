"""Converts guest values to JSON, for the value of a run and the arguments of a call; renders errors. All of it is bounded."""

import base64
import math
from collections.abc import Mapping
from typing import Any

import pydantic_monty as monty

from holdfast.core import Json, encode
from holdfast.guests.python.file_insertions import as_written
from holdfast.guests.python.file_prelude import FILE_CLASS, without_prelude

MAX_DEPTH = 64
MAX_ITEMS = 500_000
MAX_CHARACTERS = 192 << 20
_MAX_TEXT = 2_000
_MAX_ERROR = 16_000
_DISPLAYED = monty.MontyRuntimeError | monty.MontySyntaxError | monty.MontyTypingError


class NotPlain(Exception):
    """A value has no JSON form. The message names the part."""


class JsonConverter:
    """Converts values that leave the guest together, and counts them, because a guest may share one text a million times.

    A value without a JSON form is described in words, or raises NotPlain if strict.
    """

    def __init__(self, *, is_strict: bool = False, max_characters: int = MAX_CHARACTERS) -> None:
        self._is_strict = is_strict
        self._max_characters = max_characters
        self._items = 0
        self._characters = 0

    def convert(self, value: Any, depth: int = 0) -> Json:
        """The JSON form of a value. Raises NotPlain."""
        self._items += 1
        if self._items > MAX_ITEMS:
            raise NotPlain(f"more than {MAX_ITEMS} items")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._count(value)
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else self._other(value, depth)
        if depth >= MAX_DEPTH:
            raise NotPlain(f"nested deeper than {MAX_DEPTH}")
        if isinstance(value, Mapping):
            return {self._key(key, depth): self.convert(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.convert(item, depth + 1) for item in value]
        if isinstance(value, (set, frozenset)) and not self._is_strict:
            return sorted((self.convert(item, depth + 1) for item in value), key=repr)
        return self._other(value, depth)

    def _count(self, text: str) -> str:
        self._characters += len(text)
        if self._characters > self._max_characters:
            raise NotPlain(f"more than {self._max_characters} characters")
        return text

    def _integer(self, value: int) -> Json:
        # JSON readers agree on integers of 64 bits only.
        return value if -(2**63) <= value < 2**64 else self._other(value, 0)

    def _key(self, key: Any, depth: int) -> str:
        if isinstance(key, str):
            return self._count(key)
        if self._is_strict:
            raise NotPlain(f"a key is of type {type(key).__name__}, not str")
        self.convert(key, depth + 1)  # counts what the text would contain
        try:
            return str(key)[:_MAX_TEXT]
        except (ValueError, RecursionError):
            return f"<{type(key).__name__}>"

    def _other(self, value: Any, depth: int) -> Json:
        if self._is_strict:
            raise NotPlain(f"a value of type {type(value).__name__}")
        if isinstance(value, bytes):
            return self._count(base64.b64encode(value).decode())
        if isinstance(value, monty.MontyClassProxy) and value.name == FILE_CLASS:
            name, mode = value.attributes.get("name"), value.attributes.get("mode")
            return _short(f"<file {self.convert(name, depth + 1)!r} mode {self.convert(mode, depth + 1)!r}>")
        if isinstance(value, monty.MontyClassProxy):
            # Its own repr would repeat whatever its attributes share.
            attributes = self.convert(value.attributes, depth + 1)
            assert isinstance(attributes, dict)
            inside = ", ".join(f"{name}={attribute!r}" for name, attribute in attributes.items())
            return _short(f"{value.name}({inside})")
        try:
            text = self._count(repr(value))
        except (ValueError, RecursionError):
            # An integer of more than 4,300 digits has no repr.
            return f"<{type(value).__name__}>"
        return _short(text)


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


def render_value(complete: monty.MontyComplete, *, max_bytes: int) -> Json:
    """The value of a finished run, or a description if it is too large."""
    try:
        # Counted first: JSON takes up to six times the memory of a text.
        value = JsonConverter(max_characters=max_bytes).convert(complete.output)
        size = len(encode(value))
    except NotPlain as error:
        return f"<a value that is too large to show: {error}>"
    if size > max_bytes:
        return f"<a value of {size} bytes; at most {max_bytes} are shown>"
    return value


def render_error(error: monty.MontyError) -> str:
    """The traceback, shortened in the middle if it is long."""
    if not isinstance(error, _DISPLAYED):
        return _shortened(str(error), _MAX_ERROR)
    # Shortened before the lines are searched: a message may have megabytes, and the frames stand before it.
    return _shortened(as_written(without_prelude(_shortened(error.display(), 4 * _MAX_ERROR))), _MAX_ERROR)


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n... {len(text) - most} characters ...\n{text[-half:]}"
