"""A remote server: the streamable HTTP transport, with a measure on what a server may answer."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from holdfast.mcp.process import MAX_LINE_BYTES


@contextlib.asynccontextmanager
async def reach(url: str, headers: Mapping[str, str]) -> AsyncIterator[Any]:
    """The two streams of a server at an address, until the block is left."""
    # A compressed body could be a thousand times what it seems to be.
    http = create_mcp_http_client(headers={**headers, "Accept-Encoding": "identity"})
    http.event_hooks = {"response": [_bound]}
    async with http, streamable_http_client(url, http_client=http, max_sse_event_size=MAX_LINE_BYTES) as pair:
        yield pair


async def _bound(response: httpx2.Response) -> None:
    response.headers.pop("content-encoding", None)
    # A stream of events may be as long as it likes; the library bounds each of them.
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Measured(response.stream)


class _Measured(httpx2.AsyncByteStream):
    """A body that ends where it becomes too large."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_LINE_BYTES:
                raise httpx2.StreamError(f"it answered with more than {MAX_LINE_BYTES >> 20} MiB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
