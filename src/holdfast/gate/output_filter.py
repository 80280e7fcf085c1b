"""The output filter: bounds the size of what a guest receives and removes known secrets from it."""

import msgspec

from holdfast.core import MAX_DEPTH, Json, encode, is_too_deep
from holdfast.core.errors import ToolFailed


class OutputFilter:
    """Bounds and redacts results. Secrets are the exact values that we passed to servers and providers."""

    def __init__(self, *, max_bytes: int = 100_000, secrets: tuple[str, ...] = ()) -> None:
        self._max_bytes = max_bytes
        # The longest first, so that a secret which contains another is not left half visible.
        self._secrets = tuple(sorted((s for s in secrets if len(s) >= 6), key=len, reverse=True))

    def filter_result(self, result: Json) -> Json:
        """The result as the guest receives it. Raises ToolFailed if a journal could not store it."""
        if is_too_deep(result):
            raise ToolFailed(f"the tool's result is nested more than {MAX_DEPTH} levels deep")
        content = encode(result)
        if not self._secrets and len(content) <= self._max_bytes:
            return result
        text = content.decode()
        cleaned = self.redact(text)
        if len(cleaned.encode()) <= self._max_bytes:
            return result if cleaned is text else _decode(cleaned)
        shown = result if isinstance(result, str) else cleaned
        return self._shorten(self.redact(shown))

    def redact(self, text: str) -> str:
        """The text with every known secret replaced."""
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
            escaped = encode(secret).decode()[1:-1]
            text = text.replace(escaped, "[secret]")
        return text

    def filter_error(self, error: str) -> str:
        """The text of an error as it may be shown and recorded."""
        words = self.redact(error.encode(errors="replace").decode())
        return words if len(words.encode()) <= self._max_bytes else self._shorten(words)

    def _shorten(self, text: str) -> str:
        content = text.encode()
        head, tail = int(self._max_bytes * 0.8), int(self._max_bytes * 0.2)
        left_out = len(content) - head - tail
        start = content[:head].decode(errors="ignore")
        end = content[len(content) - tail :].decode(errors="ignore")
        return f"{start}\n[... {left_out:,} bytes omitted ...]\n{end}"


def _decode(text: str) -> Json:
    value: Json = msgspec.json.decode(text.encode())
    return value
