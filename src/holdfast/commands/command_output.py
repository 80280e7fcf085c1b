"""The output of a program: its start and end for the model, and the whole, up to a limit, for a blob."""

import codecs

MAX_KEPT_BYTES = 64 << 20
"""Output beyond this is counted and not kept."""


class CommandOutput:
    """Receives output as it arrives. Memory is bounded by `MAX_KEPT_BYTES`."""

    def __init__(self, *, shown_bytes: int, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self._shown_bytes = shown_bytes
        self._max_kept_bytes = max_kept_bytes
        self._kept = bytearray()
        self._tail = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        """Append output."""
        self.size += len(data)
        room = self._max_kept_bytes - len(self._kept)
        self._kept += data[:room]
        if len(data) > room:
            # The end is shown even if it is not kept.
            self._tail = (self._tail + data[max(0, room) :])[-self._shown_bytes :]

    @property
    def kept(self) -> bytes:
        """The output, up to the limit."""
        return bytes(self._kept)

    def since(self, position: int) -> str:
        """The kept output from a position, shortened like `shown`."""
        return _shorten(bytes(self._kept[position:]), self._shown_bytes)

    @property
    def shown(self) -> str:
        """The start and the end, with a note of what is omitted between them."""
        whole = bytes(self._kept)
        if self.size <= len(whole):
            return _shorten(whole, self._shown_bytes)
        half = self._shown_bytes // 2
        end = (whole[-half:] + bytes(self._tail))[-half:]
        return _join(whole[:half], end, self.size - 2 * half)


def decode_output(data: bytes) -> str:
    """Output as text; bytes that are not UTF-8 are replaced."""
    return data.decode("utf-8", "replace")


class OutputDecoder:
    """Decodes output that arrives in pieces, which may end in the middle of a character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __call__(self, data: bytes) -> str:
        return self._decoder.decode(data)


def _shorten(data: bytes, limit: int) -> str:
    if len(data) <= limit:
        return decode_output(data)
    half = limit // 2
    return _join(data[:half], data[-half:], len(data) - 2 * half)


def _join(head: bytes, tail: bytes, omitted: int) -> str:
    start = head.decode("utf-8", "ignore")
    end = tail.decode("utf-8", "ignore")
    return f"{start}\n[... {omitted:,} bytes of output omitted ...]\n{end}"
