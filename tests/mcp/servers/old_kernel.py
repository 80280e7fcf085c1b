"""Runs a command as if the kernel had never heard of Landlock: `old_kernel.py CONFINE_PY COMMAND [ARGUMENT...]`."""

import errno
import importlib.util
import os
import platform
import sys

LANDLOCK_CREATE_RULESET = 444

spec = importlib.util.spec_from_file_location("confine", sys.argv[1])
assert spec is not None
assert spec.loader is not None
confine = importlib.util.module_from_spec(spec)
spec.loader.exec_module(confine)
confine._libc.prctl(38, 1, 0, 0, 0)
confine.forbid(platform.machine(), {LANDLOCK_CREATE_RULESET: errno.ENOSYS})
os.execvp(sys.argv[2], sys.argv[2:])
