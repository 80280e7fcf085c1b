"""Servers of local models that run on this machine: found by asking the ports they usually have."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec

from holdfast.core import Value
from holdfast.models.specs import is_loopback

_TIME_LIMIT_SECONDS = 0.5
_LONGEST_ANSWER = 1_000_000

_OLLAMA, _OLLAMA_PORT = "Ollama", 11434
_OTHERS = (("llama-server", 8080), ("LM Studio", 1234))


def usual_ports(environ: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """Where servers of models usually listen on this machine; Ollama's own variable says where it does."""
    named = environ.get("OLLAMA_HOST", "").strip()
    parts = urlsplit(named if "//" in named else f"//{named}")
    try:
        port = parts.port or _OLLAMA_PORT
    except ValueError:
        return _OTHERS
    everywhere = "0.0.0.0"  # noqa: S104 - what Ollama is told to listen on, so here too
    is_here = not parts.hostname or parts.hostname == everywhere or is_loopback(f"//{parts.netloc}")
    return ((_OLLAMA, port), *_OTHERS) if is_here else _OTHERS


class LocalServer(Value):
    """A server that answered, and the specs of the models it has."""

    title: str
    url: str
    models: tuple[str, ...]


class _Listed(Value):
    id: str


class _Listing(Value):
    data: tuple[_Listed, ...]


async def local_servers(
    ports: Sequence[tuple[str, int]] | None = None, *, limit_seconds: float = _TIME_LIMIT_SECONDS
) -> tuple[LocalServer, ...]:
    """All that answer within the limit, asked at once; in the order of the ports."""
    asked = usual_ports(os.environ) if ports is None else ports
    found = await asyncio.gather(*(_look(title, port, limit_seconds) for title, port in asked))
    return tuple(server for server in found if server is not None)


async def _look(title: str, port: int, limit_seconds: float) -> LocalServer | None:
    try:
        async with asyncio.timeout(limit_seconds):
            body = await _get_models(port)
        listing = msgspec.json.decode(body, type=_Listing)
    except (OSError, TimeoutError, msgspec.DecodeError, asyncio.IncompleteReadError, ValueError):
        return None  # nobody there, or something else that is none of our business
    url = f"http://127.0.0.1:{port}/v1"
    head = "ollama:" if (title, port) == (_OLLAMA, _OLLAMA_PORT) else f"server:{url}#"
    return LocalServer(title=title, url=url, models=tuple(f"{head}{model.id}" for model in listing.data))


async def _get_models(port: int) -> bytes:
    """The answer to GET /v1/models, by hand: a whole HTTP library takes longer to load than this takes to ask."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            f"GET /v1/models HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n".encode()
        )
        await writer.drain()
        answer = await _read_all(reader)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise ValueError("not a list of models")
    return _dechunked(body) if b"transfer-encoding: chunked" in head.lower() else body


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    answer = bytearray()
    while piece := await reader.read(65536):
        answer += piece
        if len(answer) > _LONGEST_ANSWER:
            raise ValueError("too long for a list of models")
    return bytes(answer)


def _dechunked(body: bytes) -> bytes:
    """Some servers answer in chunks even when asked in HTTP 1.0."""
    whole = bytearray()
    while True:
        size_line, _, body = body.partition(b"\r\n")
        size = int(size_line.split(b";")[0], 16)
        if size == 0:
            return bytes(whole)
        whole += body[:size]
        body = body[size + 2 :]
