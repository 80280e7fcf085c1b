"""The log file: warnings of libraries and internal errors, in Holdfast's data directory.

What a session did is in its journal, not here. Log records never go to the terminal. Known secrets are redacted, the size of a
record and of the file is limited, and only the owner can read the file.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.core.errors import HoldfastError

MAX_BYTES = 1_000_000
"""Size limit of the file. The previous file is kept as `holdfast.log.1`."""
MAX_RECORD_BYTES = 64_000
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class LogFileHandler(logging.Handler):
    """Appends each record in one write, so that several processes can share the file."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter(_FORMAT))

    def emit(self, record: logging.LogRecord) -> None:
        # Here, because most commands log nothing and should not load the store.
        from holdfast.store import Home

        home = Home.default()
        with suppress(OSError, HoldfastError):  # a log that cannot be written must not fail the command
            _append(home.log, _redacted(self.format(record), home.root))


@contextmanager
def log_to_file() -> Iterator[logging.Logger]:
    """Send everything that is logged while the block runs to the log file, and nowhere else."""
    root, handler = logging.getLogger(), LogFileHandler()
    root.addHandler(handler)
    try:
        yield logging.getLogger("holdfast")
    finally:
        root.removeHandler(handler)


def _append(path: Path, body: bytes) -> None:
    from holdfast.store import private_folder

    private_folder(path.parent.parent)
    private_folder(path.parent)
    if path.exists() and path.stat().st_size + len(body) > MAX_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
    descriptor = os.open(path, _APPEND, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, body)
    finally:
        os.close(descriptor)


def _redacted(text: str, root: Path) -> bytes:
    from holdfast.cli.redaction import known_secrets

    body = known_secrets(root)(text.encode("utf-8", "backslashreplace"))
    return body[:MAX_RECORD_BYTES].rstrip(b"\n") + b"\n"
