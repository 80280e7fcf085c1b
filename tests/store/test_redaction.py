"""Redaction: of a secret that we know no part is written, however it stands in an event."""

import json

import pytest

from holdfast.core.errors import InvalidInput
from holdfast.store import Redactor

GONE = b"[redacted]"


def test_a_secret_that_holds_another_goes_as_a_whole() -> None:
    for redact in (Redactor("abcd", "abcd-efgh"), Redactor("abcd-efgh", "abcd")):
        assert redact(b"key=abcd-efgh, abcd") == b"key=" + GONE + b", " + GONE


@pytest.mark.parametrize("secret", ['quo"ted', "back\\slash", "zwölf", "line\nbreak"])
def test_a_secret_is_found_plain_escaped_and_escaped_twice(secret: str) -> None:
    once, twice = json.dumps(secret), json.dumps(json.dumps(secret, ensure_ascii=False), ensure_ascii=False)
    redact = Redactor(secret)
    for text in (secret, once, json.dumps(secret, ensure_ascii=False), twice):
        assert GONE in redact(text.encode())


def test_what_is_too_short_to_tell_is_no_secret() -> None:
    with pytest.raises(InvalidInput):
        Redactor("abc")
