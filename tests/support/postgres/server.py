"""The server of the tests: flushes nothing to disk, because most tests lose no power."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from holdfast.worker.local_postgres import LocalPostgres
from holdfast.worker.local_postgres.server import _launch

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

    def __init__(self, folder: Path, *, is_fast: bool = True, settings: Sequence[str] = ()) -> None:
        super().__init__(
            folder, settings=(*_COMMON, *(_FAST if is_fast else ()), *settings), is_durable=False
        )

    def copy(self, folder: Path) -> "Server":
        """A standby of this server, which runs, in another folder: not started yet."""
        standby = Server(folder, settings=self._settings)
        for each in (folder, standby._socket.parent, standby._data):
            standby._own(each)
        options = ["-h", str(self._socket.parent), "-U", "postgres", "-D", str(standby._data)]
        subprocess.run(
            [*_launch("pg_basebackup"), *options, "-R", "-c", "fast", "--no-sync"],
            check=True,
            capture_output=True,
            cwd=folder,
        )
        return standby

    def stop(self, *, is_immediate: bool = True) -> None:
        """Stop the server; by default as in a crash."""
        super().stop(is_immediate=is_immediate)

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class SmallDiskServer(Server):
    """A server that sees a small file system at `disk`, in a mount namespace of its own. Only root can start one."""

    @property
    def disk(self) -> Path:
        """The folder, as the server sees it."""
        return self.folder / "disk"

    @property
    def disk_from_here(self) -> Path:
        """The folder, as other processes see it."""
        return Path(f"/proc/{self.pid}/root") / self.disk.relative_to("/")

    def create(self) -> None:
        super().create()
        self._own(self.disk)

    def _command(self, settings: Sequence[str]) -> list[str]:
        owner = self._user[0] if self._user is not None else os.getuid()
        mount = f"mount -t tmpfs -o size=4m,mode=700,uid={owner} none {self.disk}"
        return ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh", *super()._command(settings)]
