"""Redaction of known secrets: the one redactor, for what is written to disk and for what a guest receives."""

import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from holdfast.core import Json, encode
from holdfast.core.errors import InvalidInput

REDACTED = "[redacted]"
MIN_SECRET_LENGTH = 4
"""Shorter values would match inside ordinary words."""


class Redactor:
    """Replaces exact secrets, which we passed to servers and providers ourselves, in the JSON of events and in values."""

    def __init__(self, *secrets: str) -> None:
        self._forms: list[bytes] = []
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Redact this value from now on. Raises InvalidInput if it is too short."""
        if len(secret) < MIN_SECRET_LENGTH:
            raise InvalidInput(f"a secret has at least {MIN_SECRET_LENGTH} characters")
        # In JSON a secret may be escaped, and in a JSON text inside a JSON string it is escaped twice.
        plain = secret.encode()
        once = json.dumps(secret, ensure_ascii=False)[1:-1].encode()
        twice = json.dumps(once.decode(), ensure_ascii=False)[1:-1].encode()
        ascii_only = json.dumps(secret)[1:-1].encode()
        known = {*self._forms, twice, ascii_only, once, plain, *_quoted(secret)}
        # Longest first: a secret that contains another is replaced whole. One assignment: another thread may be writing.
        self._forms = sorted(known, key=len, reverse=True)

    def __call__(self, body: bytes) -> bytes:
        for form in self._forms:
            if form in body:
                body = body.replace(form, REDACTED.encode())
        return body

    def redact_text(self, text: str) -> str:
        """The text without secrets."""
        return self(text.encode()).decode()

    def redact_value(self, value: Json, body: bytes) -> Json:
        """The value without secrets; `body` is its text or JSON, in which most values show at once that they have none."""
        return value if self(body) == body else self._redact_parts(value)

    def _redact_parts(self, value: Json) -> Json:
        match value:
            case str():
                return self.redact_text(value)
            case list():
                return [self._redact_parts(each) for each in value]
            case dict():
                return {self.redact_text(key): self._redact_parts(each) for key, each in value.items()}
            case _:  # a number may be a secret as well
                body = encode(value)
                return value if self(body) == body else REDACTED


_UNQUOTED = ("", "/", "!$&'()*+,;=:@/?", "@:+=?/", "@:+=?")
"""The characters that programs leave as they are in a part of an address, beside letters, digits and `-._~`."""


def _quoted(secret: str) -> Iterator[bytes]:
    """The secret as an address contains it. Errors of HTTP clients name the address."""
    body = secret.encode("utf-8", "surrogatepass")
    for text in {quote_plus(body), *(quote(body, safe=safe) for safe in _UNQUOTED)}:
        yield text.encode()
        yield re.sub("%..", lambda found: found[0].lower(), text).encode()
