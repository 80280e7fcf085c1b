"""For every test: programs start as they would at a terminal, however the tests were started."""

import gc
import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and a program that a test starts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Take what was collected out of garbage collection: a million objects that stay until the end."""
    gc.collect()
    gc.freeze()
