"""The output filter: bounds the size of what a guest receives and removes known secrets from it."""

from holdfast.core import MAX_DEPTH, Json, encode, is_too_deep
from holdfast.core.errors import ToolFailed
from holdfast.store import Redactor


class OutputFilter:
    """Bounds and redacts results. It shares its redactor with the store, so a guest sees no secret that the journal hides."""

    def __init__(self, *, max_bytes: int = 100_000, redactor: Redactor | None = None) -> None:
        self._max_bytes = max_bytes
        self._redactor = redactor or Redactor()

    def filter_result(self, result: Json) -> Json:
        """The result as the guest receives it. Raises ToolFailed if a journal could not store it."""
        if is_too_deep(result):
            raise ToolFailed(f"the tool's result is nested more than {MAX_DEPTH} levels deep")
        content = encode(result)
        redacted = self._redactor.redact_value(result, content)
        if redacted is not result:
            content = encode(redacted)
        if len(content) <= self._max_bytes:
            return redacted
        return self._shorten(redacted if isinstance(redacted, str) else content.decode())

    def filter_error(self, error: str) -> str:
        """The text of an error as it may be shown and recorded."""
        text = self._redactor.redact_text(error.encode(errors="replace").decode())
        return text if len(text.encode()) <= self._max_bytes else self._shorten(text)

    def _shorten(self, text: str) -> str:
        content = text.encode()
        head, tail = int(self._max_bytes * 0.8), int(self._max_bytes * 0.2)
        omitted = len(content) - head - tail
        start = content[:head].decode(errors="ignore")
        end = content[len(content) - tail :].decode(errors="ignore")
        return f"{start}\n[... {omitted:,} bytes omitted ...]\n{end}"
