"""Becomes a program of PostgreSQL: as another user if this is root, and ended with the process that started it."""

import ctypes
import os
import pwd
import signal
import sys

_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_CAP_AMBIENT, _CAP_AMBIENT_RAISE = 1, 8, 47, 2
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2
_CAPABILITY_VERSION_3 = 0x20080522
_LIBC = ctypes.CDLL(None)


def main() -> None:
    """Execute the program in the arguments; the first one is the process id of the parent."""
    parent, *program = sys.argv[1:]
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        _become_nobody()
    # After the change of user, which clears it. A fast shutdown: transactions end, and the data is complete.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
    if os.getppid() == int(parent):
        os.execv(program[0], program)  # noqa: S606


def _become_nobody() -> None:
    """Change the user. Keep the right to pass through folders of root, because the server's folder is in one."""
    account = pwd.getpwnam("nobody")
    _LIBC.prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)
    for capability in (_CAP_DAC_READ_SEARCH, _CAP_DAC_OVERRIDE):  # many containers have only the second
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        bit = 1 << capability
        sets = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)  # effective, permitted, inheritable
        if _LIBC.capset(header, sets) == 0:
            _LIBC.prctl(_PR_CAP_AMBIENT, _CAP_AMBIENT_RAISE, capability, 0, 0)
            return


if __name__ == "__main__":
    main()
