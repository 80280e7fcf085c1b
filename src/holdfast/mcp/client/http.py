"""A remote server: the streamable HTTP transport, with a measure on what a server may answer."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextvars import Context
from typing import Any, Self

import httpx2
import mcp_types
import msgspec
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import SessionMessage

from holdfast.mcp.client.pending_requests import TOO_MANY_PARTS, has_too_many_parts
from holdfast.mcp.client.stdio import MAX_LINE_BYTES


@contextlib.asynccontextmanager
async def connect_http(url: str, headers: Mapping[str, str]) -> AsyncIterator[Any]:
    """The two streams of a server at an address, until the block is left."""
    # A compressed body could be a thousand times what it seems to be.
    http = create_mcp_http_client(headers={**headers, "Accept-Encoding": "identity"})
    http.event_hooks = {"response": [_bound]}
    async with http, streamable_http_client(url, http_client=http, max_sse_event_size=MAX_LINE_BYTES) as pair:
        incoming, outgoing = pair
        yield _Measured(incoming), outgoing


class _Measured:
    """What a server sends, an answer of too many parts as the error that it is: in a body and in a stream of events alike."""

    def __init__(self, incoming: Any) -> None:  # Any: the library keeps the type of its streams to itself
        self._incoming = incoming

    @property
    def last_context(self) -> Context | None:
        """Of whoever sent the last message; the library asks for it."""
        context: Context | None = self._incoming.last_context
        return context

    async def receive(self) -> SessionMessage | Exception:
        return _measured(await self._incoming.receive())

    async def aclose(self) -> None:
        await self._incoming.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return _measured(await anext(self._incoming))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _measured(item: SessionMessage | Exception) -> SessionMessage | Exception:
    match item:
        case SessionMessage(message=mcp_types.JSONRPCResponse(id=id, result=result)) if has_too_many_parts(
            result
        ):
            error = mcp_types.ErrorData(code=mcp_types.PARSE_ERROR, message=TOO_MANY_PARTS)
            return SessionMessage(mcp_types.JSONRPCError(jsonrpc="2.0", id=id, error=error))
        case _:
            return item


async def _bound(response: httpx2.Response) -> None:
    response.headers.pop("content-encoding", None)
    # A stream of events may be as long as it likes; the library bounds each of them, and takes them for what they answer.
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        asked = _id_of(response.request) if response.status_code == httpx2.codes.OK else None
        response.stream = _Body(response.stream, asked)


class _Named(msgspec.Struct):
    id: int | str | None = None


def _id_of(request: httpx2.Request) -> int | str | None:
    """The id of the request that was posted; None where it was none, or a notification."""
    return msgspec.json.decode(request.content, type=_Named).id if request.method == "POST" else None


class _Body(httpx2.AsyncByteStream):
    """A body that ends where it becomes too large, and is the answer to what was asked or an error."""

    def __init__(self, stream: httpx2.AsyncByteStream, asked: int | str | None) -> None:
        self._stream = stream
        self._asked = asked

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = bytearray()
        async for chunk in self._stream:
            body += chunk
            if len(body) > MAX_LINE_BYTES:
                raise httpx2.StreamError(f"it answered with more than {MAX_LINE_BYTES >> 20} MiB")
        if self._asked is not None:
            self._check(bytes(body))
        yield bytes(body)

    def _check(self, body: bytes) -> None:
        """The library drops an answer to another request, and the one that was asked would wait until its time is up."""
        try:
            answered = msgspec.json.decode(body, type=_Named).id
        except (ValueError, RecursionError):  # no JSON, or no UTF-8 in it
            raise httpx2.StreamError("it sent no whole answer") from None
        if answered is not None and str(answered) != str(self._asked):
            raise httpx2.StreamError("it answered another request than the one that was made")

    async def aclose(self) -> None:
        await self._stream.aclose()
