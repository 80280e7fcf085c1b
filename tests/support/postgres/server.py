"""One PostgreSQL server in its own folder, reached through a socket in that folder."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.postgres.binaries import reachable_programs

START_SECONDS = 120
_FAST = (
    "fsync=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "autovacuum=off",
)
"""For tests that lose no power: what is flushed is not their subject."""
_LAUNCHER = Path(__file__).with_name("launch_main.py")


class Server:
    """A server that ends with the process that started it. PostgreSQL refuses to run as root, so root's runs as nobody."""

    def __init__(self, folder: Path, *, is_fast: bool = True) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._settings = _FAST if is_fast else ()
        self._process: subprocess.Popen[bytes] | None = None
        account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._user = (account.pw_uid, account.pw_gid) if account is not None else None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None
        return self._process.pid

    def url(self, database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://postgres@/{database}?host={self._folder / 'socket'}"

    def create(self) -> None:
        """Create the folder and the server's data."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o711 if self._user is not None else 0o700)
        self._programs = reachable_programs(self._folder)
        for folder in (self._data, self._folder / "socket"):
            folder.mkdir(mode=0o700)
            if self._user is not None:
                os.chown(folder, *self._user)
        options = ("-U", "postgres", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
        subprocess.run(
            [*self._launch("initdb"), "-D", self._data, *options],
            check=True,
            stdout=subprocess.DEVNULL,
            env={"PATH": os.defpath, "TZ": "UTC"},
        )

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        where = (f"unix_socket_directories={self._folder / 'socket'}", "listen_addresses=")
        settings = (*where, "max_connections=200", "shared_buffers=64MB", *self._settings)
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._launch("postgres"), "-D", self._data, *_options(settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.defpath, "TZ": "UTC"},
                start_new_session=True,  # a Ctrl-C at the terminal is not for the server
            )
        self._wait_until_ready()

    def stop(self, *, is_immediate: bool = True) -> None:
        """Stop the server; immediately means as in a crash, without a checkpoint."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT if is_immediate else signal.SIGINT)
            self._process.wait(timeout=START_SECONDS)
        self._process = None

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _launch(self, program: str) -> list[str]:
        return [sys.executable, "-I", str(_LAUNCHER), str(os.getpid()), str(self._programs / program)]

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        path = self._folder / "socket" / ".s.PGSQL.5432"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            if _is_ready(path):
                return
            time.sleep(0.02)
        raise RuntimeError(f"PostgreSQL did not start:\n{(self._folder / 'log').read_text()[-2000:]}")


def _options(settings: Sequence[str]) -> list[str]:
    return [word for setting in settings for word in ("-c", setting)]


def _is_ready(path: Path) -> bool:
    """Whether the server answers the first message of a connection with anything but "starting up"."""
    startup = b"\x00\x03\x00\x00user\x00postgres\x00database\x00postgres\x00\x00"
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(START_SECONDS)
        try:
            connection.connect(str(path))
            connection.sendall((len(startup) + 4).to_bytes(4, "big") + startup)
            return connection.recv(1) == b"R"  # the request to authenticate
        except OSError:
            return False
