"""Becomes a program of PostgreSQL: as another user if this is root, and ended with the process that started it."""

import ctypes
import os
import pwd
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Execute the program in the arguments; the first one is the process id of the parent."""
    parent, *program = sys.argv[1:]
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        account = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    # After the change of user, which clears it. Immediate shutdown: nobody needs the data any more.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
    if os.getppid() == int(parent):
        os.execv(program[0], program)


if __name__ == "__main__":
    main()
