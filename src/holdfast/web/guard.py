"""The guard of the web server: decides from its headers alone whether a request may reach the application.

A browser sends requests for any page that the user has open, so where a request comes from matters more than who sends it.
No cookie carries authority: a cookie goes to every port of a host, also to a server that an agent wrote.
"""

import hmac
from collections.abc import Iterable, Sequence
from typing import Literal

from holdfast.core import Value
from holdfast.store import API_KEY_PREFIX

SAFE_METHODS = ("GET", "HEAD")
MAX_BODY_BYTES = 1 << 20
ENTER = "/api/enter"
"""Exchanges a one-time code for a token."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    # Not `no-referrer`: with it, a form of our own page would send `Origin: null`.
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), usb=(), payment=()",
    "cache-control": "no-store",
}
"""On every response, refusals included."""


class Refusal(Value):
    """Why a request is refused before it reaches the application."""

    status: Literal[401, 403, 411, 413, 415, 421]
    code: str
    text: str


def find_refusal(
    *,
    method: str,
    path: str,
    headers: Iterable[tuple[bytes, bytes]],
    origins: Sequence[str],
    tokens: Sequence[bytes],
    has_api_key: bool = False,
) -> Refusal | None:
    """Judge a request; None if it may pass. `origins` are our own, such as `http://127.0.0.1:7788`.

    A request with a valid API key need not come from our page: a page of another site cannot send that header.
    """
    found: dict[bytes, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value.decode("latin-1"))
    hosts = {origin.partition("://")[2] for origin in origins}
    if len(found.get(b"host", ())) != 1 or found[b"host"][0] not in hosts:
        return Refusal(status=421, code="unknown-host", text="this server does not have that name")
    if b"transfer-encoding" in found:
        # Chunks of one byte cost a thousand times their size to read.
        return Refusal(status=411, code="no-length", text="the body must have a content-length")
    lengths = found.get(b"content-length", ())
    if any(not each.isdecimal() or len(each) > 7 or int(each) > MAX_BODY_BYTES for each in lengths):
        return Refusal(status=413, code="too-large", text="the request is too large: at most one megabyte")
    if any(given not in origins for given in found.get(b"origin", ())):
        return Refusal(status=403, code="foreign-origin", text="the request comes from another page")
    site = found.get(b"sec-fetch-site", [])
    if _opens_page(method, path, found):
        return None
    if any(given not in ("same-origin", "none") for given in site):
        return Refusal(status=403, code="foreign-site", text="the request comes from another site")
    given_key = bearer(found.get(b"authorization", [])).startswith(API_KEY_PREFIX.encode())
    if given_key and not has_api_key:
        return Refusal(
            status=401,
            code="no-key",
            text="this API key is not valid here: it was mistyped or revoked, or is one of another tenant",
        )
    if method not in SAFE_METHODS:
        if not has_api_key and (site != ["same-origin"] or len(found.get(b"origin", ())) != 1):
            return Refusal(status=403, code="not-our-page", text="only our own page may do this")
        kind = found.get(b"content-type", [""])
        if len(kind) != 1 or kind[0].partition(";")[0].strip().lower() != "application/json":
            return Refusal(status=415, code="not-json", text="the body must be application/json")
    if (
        path.startswith("/api/")
        and path != ENTER
        and not (has_api_key or _is_authorized(found.get(b"authorization", []), tokens))
    ):
        return Refusal(
            status=401, code="no-token", text="open the link that `holdfast web` prints; it works once"
        )
    return None


def _opens_page(method: str, path: str, found: dict[bytes, list[str]]) -> bool:
    """Whether the user follows a link to the page itself, which has no content before its own requests are answered."""
    modes, targets = found.get(b"sec-fetch-mode", []), found.get(b"sec-fetch-dest", [])
    return method == "GET" and path == "/" and modes == ["navigate"] and targets == ["document"]


def bearer(values: Sequence[str]) -> bytes:
    """The token of an Authorization header; empty without one, or with several."""
    scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    return token.encode("latin-1") if scheme == "Bearer" else b""


def _is_authorized(values: Sequence[str], tokens: Sequence[bytes]) -> bool:
    given = bearer(values)
    return given != b"" and any(hmac.compare_digest(given, token) for token in tokens)
