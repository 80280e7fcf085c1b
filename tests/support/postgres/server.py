"""The server of the tests: flushes nothing to disk, because most tests lose no power."""

import shutil
from pathlib import Path

from holdfast.worker.local_postgres import LocalPostgres

_COMMON = ("max_connections=200", "shared_buffers=64MB")
_FAST = (
    "fsync=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "autovacuum=off",
)


class Server(LocalPostgres):
    """A server in a temporary folder."""

    def __init__(self, folder: Path, *, is_fast: bool = True) -> None:
        super().__init__(folder, settings=(*_COMMON, *(_FAST if is_fast else ())), is_durable=False)

    def stop(self, *, is_immediate: bool = True) -> None:
        """Stop the server; by default as in a crash."""
        super().stop(is_immediate=is_immediate)

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
