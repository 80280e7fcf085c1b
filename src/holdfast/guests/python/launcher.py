"""The program that the pool starts for each worker: it confines its own process and then becomes the interpreter.

The pool starts the program that `binary_path` names. The launcher is a short script in sealed memory: it cannot be modified,
leaves no file behind, and starts even if every writable folder is mounted `noexec`.
"""

import fcntl
import functools
import os
import sys

from holdfast.process.bare_python import stub_packages

_MFD_EXEC = 0x10
_MAX_SHEBANG = 250
_SCRIPT = """\
{stubs}
from holdfast.process.confine_worker import main
sys.argv[:1] = ["launcher", {program!r}]
main(message_bytes={message_bytes})
"""


def launcher(program: str, *, message_bytes: int) -> str:
    """The path of a script that confines itself and becomes this program; valid in this process and its children.

    The script stays until the process ends, because a worker may be starting when its engine is closed.
    """
    return _launcher(program, message_bytes, os.getpid())


@functools.cache
def _launcher(program: str, message_bytes: int, process: int) -> str:
    descriptor = _executable_memfd("holdfast-launcher")
    os.write(descriptor, _script(program, message_bytes).encode())
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    return f"/proc/{process}/fd/{descriptor}"


def _executable_memfd(name: str) -> int:
    """A file in memory that can be executed and sealed."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create(name, flags | _MFD_EXEC)
    except OSError:  # before Linux 6.3 the flag does not exist, and every memfd can be executed
        return os.memfd_create(name, flags)


def _script(program: str, message_bytes: int) -> str:
    body = _SCRIPT.format(stubs=stub_packages(), program=program, message_bytes=message_bytes)
    python = os.path.realpath(sys.executable)
    if " " in python or len(python) > _MAX_SHEBANG:
        # The kernel accepts neither in a shebang line. The shell does, and Python reads its line as a string.
        return f"#!/bin/sh\n'''exec' '{python}' -IS \"$0\" \"$@\"\n'''\n{body}"
    return f"#!{python} -IS\n{body}"
