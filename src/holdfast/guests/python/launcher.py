"""The program that the pool starts for each worker: it puts up the kernel's walls and then becomes the interpreter.

The pool starts whatever `binary_path` names, so the launcher is a script of a few lines in memory that no file system
holds: nobody can change it, nothing is left behind, and a folder mounted `noexec` does not matter.
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
main()
"""


def launcher(program: str) -> str:
    """The path of a script that becomes this program behind walls; good for this process and its children.

    It stays until the process ends: a worker may be about to start when its engine is closed.
    """
    return _launcher(program, os.getpid())


@functools.cache
def _launcher(program: str, process: int) -> str:
    descriptor = _made("holdfast-launcher")
    os.write(descriptor, _script(program).encode())
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    return f"/proc/{process}/fd/{descriptor}"


def _made(name: str) -> int:
    """A file in memory that may be started, sealed against change."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create(name, flags | _MFD_EXEC)
    except OSError:  # before Linux 6.3 there is no such flag, and every one of them may be started
        return os.memfd_create(name, flags)


def _script(program: str) -> str:
    body = _SCRIPT.format(stubs=stub_packages(), program=program)
    python = os.path.realpath(sys.executable)
    if " " in python or len(python) > _MAX_SHEBANG:
        # The kernel takes neither; the shell does, and Python reads its line as a string.
        return f"#!/bin/sh\n'''exec' '{python}' -IS \"$0\" \"$@\"\n'''\n{body}"
    return f"#!{python} -IS\n{body}"
