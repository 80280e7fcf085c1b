"""The streamable HTTP transport of a server, with limits on the size of its responses."""

import contextlib
from collections.abc import AsyncIterator
from contextvars import Context
from typing import Any, Self

import httpx2
import mcp_types
import msgspec
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import SessionMessage

from holdfast.mcp.client.endpoint import Endpoint, Streams
from holdfast.mcp.client.pending_requests import TOO_MANY_OBJECTS, has_too_many_objects
from holdfast.mcp.client.stdio import MAX_LINE_BYTES
from holdfast.mcp.config.environment import headers_for


@contextlib.asynccontextmanager
async def connect(endpoint: Endpoint) -> Streams:
    """Open the message streams of a server at a URL."""
    headers = headers_for(endpoint.spec, endpoint.environ)
    # A compressed body could expand to a thousand times its size.
    http = create_mcp_http_client(headers={**headers, "Accept-Encoding": "identity"})
    http.event_hooks = {"response": [_limit_body]}
    async with (
        http,
        streamable_http_client(
            endpoint.spec.url, http_client=http, max_sse_event_size=MAX_LINE_BYTES
        ) as streams,
    ):
        incoming, outgoing = streams
        yield _BoundedStream(incoming), outgoing


class _BoundedStream:
    """The incoming stream. A response with too many objects, in a body or in an event, becomes an error."""

    def __init__(self, incoming: Any) -> None:  # Any: the library does not export the type of its streams
        self._incoming = incoming

    @property
    def last_context(self) -> Context | None:
        """The context of the last message; the library reads it."""
        context: Context | None = self._incoming.last_context
        return context

    async def receive(self) -> SessionMessage | Exception:
        return _check_size(await self._incoming.receive())

    async def aclose(self) -> None:
        await self._incoming.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return _check_size(await anext(self._incoming))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _check_size(item: SessionMessage | Exception) -> SessionMessage | Exception:
    match item:
        case SessionMessage(message=mcp_types.JSONRPCResponse(id=id, result=result)) if has_too_many_objects(
            result
        ):
            error = mcp_types.ErrorData(code=mcp_types.PARSE_ERROR, message=TOO_MANY_OBJECTS)
            return SessionMessage(mcp_types.JSONRPCError(jsonrpc="2.0", id=id, error=error))
        case _:
            return item


async def _limit_body(response: httpx2.Response) -> None:
    response.headers.pop("content-encoding", None)
    # An event stream may be endless: the library limits each event and matches it to its request.
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        request_id = _id_of(response.request) if response.status_code == httpx2.codes.OK else None
        response.stream = _BoundedBody(response.stream, request_id)


class _MessageId(msgspec.Struct):
    id: int | str | None = None


def _id_of(request: httpx2.Request) -> int | str | None:
    """The JSON-RPC id of a posted request; None for a notification and for other methods."""
    return msgspec.json.decode(request.content, type=_MessageId).id if request.method == "POST" else None


class _BoundedBody(httpx2.AsyncByteStream):
    """A response body that fails if it is too large or does not answer the request."""

    def __init__(self, stream: httpx2.AsyncByteStream, request_id: int | str | None) -> None:
        self._stream = stream
        self._request_id = request_id

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = bytearray()
        async for chunk in self._stream:
            body += chunk
            if len(body) > MAX_LINE_BYTES:
                raise httpx2.StreamError(f"it sent a response of more than {MAX_LINE_BYTES >> 20} MiB")
        if self._request_id is not None:
            self._check_id(bytes(body))
        yield bytes(body)

    def _check_id(self, body: bytes) -> None:
        """Fail on the wrong id. The library would drop the response, and the call would wait for its timeout."""
        try:
            answered = msgspec.json.decode(body, type=_MessageId).id
        except (ValueError, RecursionError):  # invalid JSON or invalid UTF-8
            raise httpx2.StreamError("it sent an incomplete response") from None
        if answered is not None and str(answered) != str(self._request_id):
            raise httpx2.StreamError("it answered a different request")

    async def aclose(self) -> None:
        await self._stream.aclose()
