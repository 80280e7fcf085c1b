"""The head of a proxy request (RFC 9110, 9112), parsed strictly: CONNECT and absolute-form `http://` only.

A spelling that two parsers could read differently is refused: bare line feeds, folded lines, two lengths, user names in hosts.
"""

import re
from typing import Literal

from holdfast.core import Value, canonical_host

END_OF_HEAD = b"\r\n\r\n"
_MAX_HEADERS = 100
_REQUEST_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]+) HTTP/1\.[01]")
_HEADER = re.compile(
    r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[\x21-\x7e\x80-\xff][\t\x20-\x7e\x80-\xff]*)?)"
)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_HOP_BY_HOP = frozenset(
    ("connection", "host", "keep-alive", "te", "trailer", "transfer-encoding", "content-length", "upgrade", "http2-settings")
)  # fmt: skip
"""Headers that concern one connection, or that are written again for the next one."""


class BadRequest(Exception):
    """A request that the proxy does not forward; the text says why."""


class ProxyRequest(Value):
    """What a program asks the proxy for. `host` is canonical."""

    method: str
    host: str
    port: int
    target: str = ""
    """Path and query for the server; empty for a tunnel."""
    headers: tuple[tuple[str, str], ...] = ()
    """The headers to pass on, without those of the connection."""
    body: Literal["none", "sized", "chunked"] = "none"
    body_bytes: int = 0

    @property
    def is_tunnel(self) -> bool:
        return self.method == "CONNECT"

    def forwarded_head(self) -> bytes:
        """The head for the server: origin form, one Host, and the connection ends with the response."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        lines = [
            f"{self.method} {self.target} HTTP/1.1",
            f"Host: {host}{'' if self.port == 80 else f':{self.port}'}",
        ]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.body == "sized":
            lines.append(f"Content-Length: {self.body_bytes}")
        elif self.body == "chunked":
            lines.append("Transfer-Encoding: chunked")
        return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


def parse_head(head: bytes) -> ProxyRequest:
    """Parse a head without its empty line. Raises BadRequest."""
    if b"\n" in head.replace(b"\r\n", b"") or b"\r" in head.replace(b"\r\n", b""):
        raise BadRequest("a line does not end in CR LF")
    first, *lines = head.decode("latin-1").split("\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    if line is None:
        raise BadRequest("the request line is not valid")
    method, target = line[1], line[2]
    headers = _parse_headers(lines)
    if method.upper() == "CONNECT":
        if method != "CONNECT":
            raise BadRequest("the method is not valid")
        host, port = _parse_authority(target)
        if port is None:
            raise BadRequest("CONNECT needs a port")
        return ProxyRequest(method=method, host=host, port=port)
    if not target.lower().startswith("http://"):
        raise BadRequest("only CONNECT and http:// URLs are forwarded")
    authority, path = _split_url(target)
    host, port = _parse_authority(authority)
    body, size = _body(headers)
    if body == "chunked" and first.endswith("HTTP/1.0"):
        raise BadRequest("HTTP/1.0 has no chunks")
    return ProxyRequest(
        method=method,
        host=host,
        port=80 if port is None else port,
        target=path,
        headers=_forwarded(headers),
        body=body,
        body_bytes=size,
    )


def _split_url(target: str) -> tuple[str, str]:
    authority, mark, rest = re.fullmatch(
        r"([^/?#\\]*)([/?#\\]?)(.*)", target[len("http://") :], re.DOTALL
    ).groups()  # type: ignore[union-attr]  # matches any text
    if mark in ("#", "\\") or "#" in rest:
        raise BadRequest("the URL is not valid")
    return authority, mark + rest if mark == "/" else "/" + mark + rest


def _parse_authority(text: str) -> tuple[str, int | None]:
    found = _AUTHORITY.fullmatch(text)
    host = canonical_host(found["host"].strip("[]")) if found else None
    if found is None or host is None:
        raise BadRequest("the host is not valid")
    if found["port"] is None:
        return host, None
    port = int(found["port"])
    if not 0 < port < 65_536:
        raise BadRequest("the port is not valid")
    return host, port


def _parse_headers(lines: list[str]) -> tuple[tuple[str, str], ...]:
    if len(lines) > _MAX_HEADERS:
        raise BadRequest(f"more than {_MAX_HEADERS} headers")
    found = [_HEADER.fullmatch(line) for line in lines]
    if not all(found):
        raise BadRequest("a header is not valid")
    return tuple((header[1], header[2].rstrip(" \t")) for header in found if header)


def _body(headers: tuple[tuple[str, str], ...]) -> tuple[Literal["none", "sized", "chunked"], int]:
    """How the body is delimited: by exactly one plain header, or there is none."""
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    codings = [value for name, value in headers if name.lower() == "transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise BadRequest("the body has two lengths")
    if codings:
        if codings[0].lower() != "chunked":
            raise BadRequest("the transfer coding is not `chunked`")
        return "chunked", 0
    if not lengths:
        return "none", 0
    if not re.fullmatch(r"[0-9]{1,15}", lengths[0]):
        raise BadRequest("the length of the body is not valid")
    return "sized", int(lengths[0])


def _forwarded(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    named = {
        option.strip().lower()
        for name, value in headers
        if name.lower() == "connection"
        for option in value.split(",")
    }
    return tuple(
        (name, value)
        for name, value in headers
        if name.lower() not in _HOP_BY_HOP | named and not name.lower().startswith("proxy-")
    )
