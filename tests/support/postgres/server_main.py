"""Runs the server of a test run, until the last process that holds a connection to its control socket is gone.

The kernel closes the connections of a process that is killed, so nothing stays behind whatever happens to pytest.
"""

import selectors
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from tests.support.postgres.server import Server

FIRST_USER_SECONDS = 120


def main() -> None:
    """Start the server, say so on the standard output, and serve until nobody is connected."""
    folder, note = map(Path, sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its users
    server = Server(folder)
    try:
        with socket.socket(socket.AF_UNIX) as control:
            server.create()
            server.start()
            control.bind(str(folder / "control"))
            control.listen()
            note.write_text(str(folder))
            print(server.url(), flush=True)
            _serve(control)
    finally:
        server.remove()
        with suppress(OSError):
            if note.read_text() == str(folder):
                note.unlink()


def _serve(control: socket.socket) -> None:
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    users: set[socket.socket] = set()
    while ready := selector.select(None if users else FIRST_USER_SECONDS):
        for key, _ in ready:
            if key.fileobj is control:
                user, _ = control.accept()
                user.send(b"1")  # for a user that connects while the server ends
                selector.register(user, selectors.EVENT_READ)
                users.add(user)
            else:
                assert isinstance(key.fileobj, socket.socket)
                selector.unregister(key.fileobj)
                users.remove(key.fileobj)
                key.fileobj.close()
        if not users:
            return


if __name__ == "__main__":
    main()
