"""The stand-in for one forked program: `client_main.py SOCKET TERMINAL SCRIPT ...` or `... TERMINAL -m MODULE ...`.

Runs on the bare interpreter. It gives its descriptors away, passes signals on, and ends as the program ends.
"""

import json
import os
import signal
import socket
import sys

umask = os.umask(0)
os.umask(umask)
request = {
    "terminal": sys.argv[2],
    "umask": umask,
    "arguments": sys.argv[3:],
    "folder": os.getcwd(),
    "environment": dict(os.environ),
}
body = json.dumps(request).encode()
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
socket.send_fds(server, [len(body).to_bytes(4, "big")], [0, 1, 2])
server.sendall(body)
pid = int.from_bytes(server.recv(4), "big")
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(pid, number))
nothing = os.open(os.devnull, os.O_RDWR)
for descriptor in (0, 1, 2):
    os.dup2(nothing, descriptor)
code = int.from_bytes(server.recv(4), "big", signed=True)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
