"""Servers of local models that run on this machine: found by asking the ports they usually have."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from holdfast.core import Value

_TIME_LIMIT_SECONDS = 0.5
_LONGEST_ANSWER = 1_000_000

KNOWN_PORTS: tuple[tuple[str, int], ...] = (("Ollama", 11434), ("llama-server", 8080), ("LM Studio", 1234))


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
    ports: Sequence[tuple[str, int]] = KNOWN_PORTS, *, limit_seconds: float = _TIME_LIMIT_SECONDS
) -> tuple[LocalServer, ...]:
    """All that answer within the limit, asked at once; in the order of the ports."""
    found = await asyncio.gather(*(_look(title, port, limit_seconds) for title, port in ports))
    return tuple(server for server in found if server is not None)


async def _look(title: str, port: int, limit_seconds: float) -> LocalServer | None:
    try:
        async with asyncio.timeout(limit_seconds):
            body = await _get_models(port)
        listing = msgspec.json.decode(body, type=_Listing)
    except (OSError, TimeoutError, msgspec.DecodeError, asyncio.IncompleteReadError, ValueError):
        return None  # nobody there, or something else that is none of our business
    url = f"http://127.0.0.1:{port}/v1"
    head = "ollama:" if title == "Ollama" else f"server:{url}#"
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
