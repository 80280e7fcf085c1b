"""For every test: programs start as at a terminal, whoever started the tests."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So in the background of a shell; a program would inherit that Ctrl-C does nothing.
    signal.signal(signal.SIGINT, signal.default_int_handler)
