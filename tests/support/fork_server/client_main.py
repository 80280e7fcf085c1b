"""The stand-in for one forked program: `client_main.py SOCKET TERMINAL SCRIPT ...` or `... TERMINAL -m MODULE ...`.

Runs on the bare interpreter, with modules that are compiled into it: `socket`, `signal` and `json` would take two thirds of
its time, and the tests start hundreds. It gives its descriptors away, passes signals on, and ends as the program ends.
"""

import marshal
import posix
import sys
from _signal import SIG_DFL, SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGUSR1, signal  # type: ignore[import-not-found]  # typeshed has only signal
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

umask = posix.umask(0)
posix.umask(umask)
request = (sys.argv[2], umask, sys.argv[3:], posix.getcwd(), posix.environ)
body = marshal.dumps(request)
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server = socket(AF_UNIX, SOCK_STREAM)
server.connect(sys.argv[1])
server.sendmsg([len(body).to_bytes(4, "big")], [(SOL_SOCKET, SCM_RIGHTS, streams)])
server.sendall(body)
pid = int.from_bytes(server.recv(4), "big")
for number in (SIGTERM, SIGINT, SIGHUP, SIGUSR1):
    signal(number, lambda number, _: posix.kill(pid, number))
nothing = posix.open("/dev/null", posix.O_RDWR)
for descriptor in (0, 1, 2):
    posix.dup2(nothing, descriptor)
code = int.from_bytes(server.recv(4), "big", signed=True)
if code < 0:
    if -code != SIGKILL:
        signal(-code, SIG_DFL)
    posix.kill(posix.getpid(), -code)
posix._exit(code)
