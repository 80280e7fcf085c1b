"""Redaction: no part of a known secret is written, in whatever form an event contains it."""

import json
import re
from urllib.parse import quote, quote_plus

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


@pytest.mark.parametrize("secret", ["p@ss/w+rd 1", "zwölf=ja", "100%sure", "a:b?c#d"])
def test_a_secret_is_redacted_as_a_part_of_an_address(secret: str) -> None:
    redact = Redactor(secret)
    for quoted in (quote(secret), quote(secret, safe=""), quote_plus(secret), quote(secret, safe="@:+=?")):
        for text in (quoted, re.sub("%..", lambda found: found[0].lower(), quoted)):
            assert redact(f"GET https://x.example/?key={text} failed".encode()) == (
                b"GET https://x.example/?key=" + GONE + b" failed"
            )


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Redactor("abc")


@pytest.mark.parametrize(
    "secret", ["sk-ant-api03-0a1b", "github_pat_11AB0c", "password=hunter2", "123456789"]
)
def test_w21_a_secret_is_known_by_its_source_and_not_by_its_form(secret: str) -> None:
    body = f'{{"text": "{secret}"}}'.encode()
    assert secret.encode() not in Redactor(secret)(body)
    assert Redactor("another secret")(body) == body
