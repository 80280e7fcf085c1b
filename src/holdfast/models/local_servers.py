"""Model servers on this machine (Ollama, llama-server, LM Studio), found by querying their default ports."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec

from holdfast.core import Value
from holdfast.models.specs import is_loopback

_TIMEOUT_SECONDS = 0.5
_MAX_RESPONSE_BYTES = 1_000_000

_OLLAMA, _OLLAMA_PORT = "Ollama", 11434
_OTHERS = (("llama-server", 8080), ("LM Studio", 1234))


def default_ports(environ: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """The default ports of model servers. $OLLAMA_HOST overrides Ollama's; on another machine Ollama is left out."""
    host = environ.get("OLLAMA_HOST", "").strip()
    parts = urlsplit(host if "//" in host else f"//{host}")
    try:
        port = parts.port or _OLLAMA_PORT
    except ValueError:
        return _OTHERS
    every_interface = "0.0.0.0"  # noqa: S104 - the variable also tells Ollama where to listen; this includes us
    is_here = not parts.hostname or parts.hostname == every_interface or is_loopback(f"//{parts.netloc}")
    return ((_OLLAMA, port), *_OTHERS) if is_here else _OTHERS


class LocalServer(Value):
    """A server that responded, and the specs of its models."""

    title: str
    url: str
    models: tuple[str, ...]


class _ModelEntry(Value):
    id: str


class _ModelList(Value):
    data: tuple[_ModelEntry, ...]


async def local_servers(
    ports: Sequence[tuple[str, int]] | None = None, *, timeout_seconds: float = _TIMEOUT_SECONDS
) -> tuple[LocalServer, ...]:
    """All servers that respond within the timeout, in the order of the ports. They are queried concurrently."""
    queried = default_ports(os.environ) if ports is None else ports
    found = await asyncio.gather(*(_query(title, port, timeout_seconds) for title, port in queried))
    return tuple(server for server in found if server is not None)


async def _query(title: str, port: int, timeout_seconds: float) -> LocalServer | None:
    try:
        async with asyncio.timeout(timeout_seconds):
            body = await _get_models(port)
        listing = msgspec.json.decode(body, type=_ModelList)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError, RecursionError):
        return None  # no server, or a server of another kind
    url = f"http://127.0.0.1:{port}/v1"
    prefix = "ollama:" if (title, port) == (_OLLAMA, _OLLAMA_PORT) else f"server:{url}#"
    return LocalServer(title=title, url=url, models=tuple(f"{prefix}{model.id}" for model in listing.data))


async def _get_models(port: int) -> bytes:
    """GET /v1/models, written by hand: loading an HTTP library takes longer than this request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            f"GET /v1/models HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n".encode()
        )
        await writer.drain()
        response = await _read_all(reader)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    head, _, body = response.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise ValueError("the response is not a list of models")
    return _join_chunks(body) if b"transfer-encoding: chunked" in head.lower() else body


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    response = bytearray()
    while piece := await reader.read(65536):
        response += piece
        if len(response) > _MAX_RESPONSE_BYTES:
            raise ValueError("the response is too long for a list of models")
    return bytes(response)


def _join_chunks(body: bytes) -> bytes:
    """Decode a chunked body. Some servers send one even for an HTTP/1.0 request."""
    joined = bytearray()
    while True:
        size_line, _, body = body.partition(b"\r\n")
        size = int(size_line.split(b";")[0], 16)
        if size == 0:
            return bytes(joined)
        joined += body[:size]
        body = body[size + 2 :]
