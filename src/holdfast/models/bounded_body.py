"""A bound on what a model server sends: on each line of a stream, and on a body without lines, while it arrives.

The library collects a line before it parses it, so a server that never ends one would fill the memory.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2

from holdfast.models.errors import ReplyTooLong

FRAME_BYTES = 64 * 1024
"""What the format of a provider adds to the text in a line."""


def limit_lines(max_bytes: int) -> Callable[[httpx2.Response], Awaitable[None]]:
    """A response hook: reading the body raises ReplyTooLong at the first line of more than `max_bytes`."""

    async def limit(response: httpx2.Response) -> None:
        # We ask for an uncompressed body. A compressed one could expand to a thousand times its size, so it is not decoded.
        response.headers.pop("content-encoding", None)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedLines(response.stream, max_bytes + FRAME_BYTES)

    return limit


class _BoundedLines(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._stream:
            last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
            first_end = min(
                (end for end in (chunk.find(b"\n"), chunk.find(b"\r")) if end >= 0), default=len(chunk)
            )
            if length + first_end > self._max_bytes:
                raise ReplyTooLong
            length = len(chunk) - last - 1 if last >= 0 else length + len(chunk)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
