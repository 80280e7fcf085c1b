"""The web servers of this data directory that run: links lead to them, and no call of an agent or a program may.

Each web server keeps a locked file in `web-servers/` of the data directory. The lock ends with its process, so a link never leads to a
server that was killed.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec

from holdfast.core import SessionId, Value, canonical_host, encode
from holdfast.store import Home, private_folder


class WebAddress(Value):
    """The address of a web server that runs."""

    origin: str
    """Where browsers reach it, such as `http://127.0.0.1:7788`."""
    since_ms: int
    port: int = 0
    """The port of this machine on which it listens."""


@contextmanager
def published_address(home: Home, address: WebAddress) -> Iterator[None]:
    """Let other processes find a web server while the block runs."""
    folder = home.web_servers
    private_folder(folder)
    for path in folder.iterdir():
        if _read(path) is None:
            path.unlink(missing_ok=True)
    path = folder / f"{os.getpid()}-{address.since_ms}.json"
    draft = path.with_suffix(".tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, encode(address))
        draft.replace(path)
        yield
    finally:
        path.unlink(missing_ok=True)
        draft.unlink(missing_ok=True)
        os.close(descriptor)


def running_servers(home: Home) -> list[WebAddress]:
    """The web servers that run now."""
    with suppress(OSError):
        return [each for path in home.web_servers.glob("*.json") if (each := _read(path)) is not None]
    return []


def own_endpoints(home: Home) -> frozenset[tuple[str, int]]:
    """The hosts and ports at which the web servers are reached: by every name of this machine, and by that of their proxy."""
    machine = canonical_host(os.uname().nodename) or "localhost"
    names = {"localhost", machine, machine.partition(".")[0]}
    found: set[tuple[str, int]] = set()
    for server in running_servers(home):
        found |= {(name, server.port) for name in names if server.port}
        parts = urlsplit(server.origin)
        found.add(
            (
                canonical_host(parts.hostname or "") or "",
                parts.port or (443 if parts.scheme == "https" else 80),
            )
        )
    return frozenset(found)


def session_link(home: Home, session: SessionId) -> str:
    """The page of a session, with what waits in it; empty where no web page runs."""
    found = running_servers(home)
    if not found:
        return ""
    newest = max(found, key=lambda each: each.since_ms)
    return f"{newest.origin}/#/s/{quote(session, safe='')}"


def _read(path: Path) -> WebAddress | None:
    """The address in a file whose server still runs."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(os.read(descriptor, 4096), type=WebAddress)
        return None
    finally:
        os.close(descriptor)
    return None
