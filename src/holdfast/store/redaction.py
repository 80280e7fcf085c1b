"""Redaction: known secrets are removed from every event before it is written."""

import json

from holdfast.core.errors import InvalidInput

REDACTED = "[redacted]"
MIN_SECRET_LENGTH = 4
"""A shorter secret would match ordinary words."""


class Redactor:
    """Replaces the secrets that were passed to servers and providers in the bytes of events."""

    def __init__(self, *secrets: str) -> None:
        self._forms: list[bytes] = []
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Redact this secret from here on. Raises InvalidInput if it is too short."""
        if len(secret) < MIN_SECRET_LENGTH:
            raise InvalidInput(f"a secret must have at least {MIN_SECRET_LENGTH} characters")
        # An event is JSON, which can contain the secret escaped, or escaped twice inside a JSON string.
        plain = secret.encode()
        once = json.dumps(secret, ensure_ascii=False)[1:-1].encode()
        twice = json.dumps(once.decode(), ensure_ascii=False)[1:-1].encode()
        ascii_only = json.dumps(secret)[1:-1].encode()
        known = {*self._forms, twice, ascii_only, once, plain}
        # Longest first, so that a secret that contains another is replaced whole. One assignment, because another
        # thread can be redacting.
        self._forms = sorted(known, key=len, reverse=True)

    def __call__(self, body: bytes) -> bytes:
        for form in self._forms:
            if form in body:
                body = body.replace(form, REDACTED.encode())
        return body
