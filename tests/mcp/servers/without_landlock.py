"""Runs a command as if the kernel had no Landlock: `without_landlock.py COMMAND [ARGUMENT...]`."""

import errno
import os
import platform
import sys

import holdfast.process.seccomp as seccomp

LANDLOCK_CREATE_RULESET = 444

seccomp.give_up_privileges()
seccomp.forbid(platform.machine(), {LANDLOCK_CREATE_RULESET: errno.ENOSYS})
os.execvp(sys.argv[1], sys.argv[1:])
