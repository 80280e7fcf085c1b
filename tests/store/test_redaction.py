"""Redaction: no part of a known secret is written, in whatever form an event contains it."""

import json

import pytest

from holdfast.core.errors import InvalidInput
from holdfast.store import Redactor

GONE = b"[redacted]"


def test_a_secret_that_contains_another_is_redacted_whole() -> None:
    for redact in (Redactor("abcd", "abcd-efgh"), Redactor("abcd-efgh", "abcd")):
        assert redact(b"key=abcd-efgh, abcd") == b"key=" + GONE + b", " + GONE


@pytest.mark.parametrize("secret", ['quo"ted', "back\\slash", "zwölf", "line\nbreak"])
def test_a_secret_is_redacted_plain_escaped_and_double_escaped(secret: str) -> None:
    once, twice = json.dumps(secret), json.dumps(json.dumps(secret, ensure_ascii=False), ensure_ascii=False)
    redact = Redactor(secret)
    for text in (secret, once, json.dumps(secret, ensure_ascii=False), twice):
        assert GONE in redact(text.encode())


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Redactor("abc")
