"""Redaction: secrets that we know are taken out of everything before it is written."""

import json

from holdfast.core.errors import InvalidInput

REDACTED = "[redacted]"
SHORTEST_SECRET = 4
"""Shorter ones would be found in every word."""


class Redactor:
    """Knows the exact secrets that were handed to servers and providers, and replaces them in the bytes of events."""

    def __init__(self, *secrets: str) -> None:
        self._forms: list[bytes] = []
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """From here on this value is not written any more. Raises InvalidInput for one that is too short to tell."""
        if len(secret) < SHORTEST_SECRET:
            raise InvalidInput(f"a secret has at least {SHORTEST_SECRET} characters")
        # An event is JSON, in which a secret may stand escaped; and a secret in a JSON text inside is escaped twice.
        plain = secret.encode()
        once = json.dumps(secret, ensure_ascii=False)[1:-1].encode()
        twice = json.dumps(once.decode(), ensure_ascii=False)[1:-1].encode()
        ascii_only = json.dumps(secret)[1:-1].encode()
        known = {*self._forms, twice, ascii_only, once, plain}
        # A secret that holds another goes as a whole. In one step: another thread may be writing.
        self._forms = sorted(known, key=len, reverse=True)

    def __call__(self, body: bytes) -> bytes:
        for form in self._forms:
            if form in body:
                body = body.replace(form, REDACTED.encode())
        return body
