"""Memory of this process: large blocks go back to the system as soon as they are freed."""

import ctypes
import functools
import sys

_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 1 << 20


@functools.cache
def return_large_blocks() -> None:
    """Have glibc map every block of a megabyte or more on its own, so that freeing it returns it.

    By default glibc raises that size up to 32 MB as a process frees large blocks. Freed values of that size then stay in the heaps of its
    threads, and a process that passed on one file of 30 MB keeps five times as much. Does nothing with another C library.
    """
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    except AttributeError:  # another C library
        return
