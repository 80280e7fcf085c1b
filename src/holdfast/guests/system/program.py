"""The program of an interpreter: what starts it, and the sources that it receives over its socket."""

import json
from functools import cache
from pathlib import Path

from holdfast.guests.system.messages import framed

INTERPRETER = "python3"
"""The first one on the path of the sandbox: that of the project's virtual environment, if it has one."""
_BOOT = (
    "import os\n"
    "def read(n):\n"
    "    b = b''\n"
    "    while len(b) < n:\n"
    "        p = os.read(0, n - len(b))\n"
    "        if not p: raise SystemExit\n"
    "        b += p\n"
    "    return b\n"
    "exec(compile(read(int.from_bytes(read(4), 'big')), '/holdfast/inside_main.py', 'exec'), {'__name__': 'holdfast'})\n"
)
_SHARED = ("written_files", "state", "runner", "tools")
"""Modules of the WASI engine that run code, and keep files and variables. They run in any CPython."""


def interpreter_argv() -> tuple[str, ...]:
    """The command that starts an interpreter. Its standard input is a socket, over which it receives `sources` first."""
    # -u: what the code prints is there when a call that it makes after it arrives.
    return (INTERPRETER, "-u", "-c", _BOOT)


@cache
def sources() -> bytes:
    """The first message to an interpreter."""
    here = Path(__file__).parent
    own = here.joinpath("inside_main.py").read_text(encoding="utf-8")
    inside = here.parent / "wasi" / "inside"
    shared = {name: inside.joinpath(f"{name}.py").read_text(encoding="utf-8") for name in _SHARED}
    return framed(f"{own}\n\nmain({json.dumps(shared)})\n".encode())
