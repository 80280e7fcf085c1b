"""The output filter: removes known secrets from what a guest receives, and refuses what is too large to receive."""

from holdfast.core import MAX_DEPTH, Json, encode, is_too_deep
from holdfast.core.errors import ToolFailed
from holdfast.store import Redactor

MAX_RESULT_BYTES = 64 << 20
"""A text has its own bytes, any other result those of its JSON. `code.value_bytes` sets it for a session."""
MAX_ERROR_BYTES = 100_000


class OutputFilter:
    """Redacts results, and never cuts one: a program receives a result whole, or an error that names the limit.

    It shares its redactor with the store, so a guest sees no secret that the journal hides. The text of an error is for
    the model and the screen, so it is shortened.
    """

    def __init__(
        self,
        *,
        max_result_bytes: int = MAX_RESULT_BYTES,
        max_error_bytes: int = MAX_ERROR_BYTES,
        redactor: Redactor | None = None,
    ) -> None:
        self._max_result_bytes = max_result_bytes
        self._max_error_bytes = max_error_bytes
        self.redactor = redactor or Redactor()

    def filter_result(self, result: Json) -> Json:
        """The result as the guest receives it. Raises ToolFailed if it is too deep or too large."""
        if is_too_deep(result):
            raise ToolFailed(f"the tool's result is nested more than {MAX_DEPTH} levels deep")
        content = result.encode() if isinstance(result, str) else encode(result)
        if len(content) > self._max_result_bytes:
            raise ToolFailed(
                f"the tool's result has {len(content):,} bytes; a result may have at most {self._max_result_bytes:,} "
                "(code.value_bytes)",
                hint="ask for less at a time, or raise code.value_bytes in config.toml",
            )
        return self.redactor.redact_value(result, content)

    def filter_error(self, error: str) -> str:
        """The text of an error as it may be shown and recorded."""
        text = self.redactor.redact_text(error.encode(errors="replace").decode())
        return text if len(text.encode()) <= self._max_error_bytes else self._shorten(text)

    def _shorten(self, text: str) -> str:
        content = text.encode()
        head, tail = int(self._max_error_bytes * 0.8), int(self._max_error_bytes * 0.2)
        omitted = len(content) - head - tail
        start = content[:head].decode(errors="ignore")
        end = content[len(content) - tail :].decode(errors="ignore")
        return f"{start}\n[... {omitted:,} bytes omitted ...]\n{end}"
