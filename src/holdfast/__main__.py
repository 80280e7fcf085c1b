"""`python -m holdfast`: the same as the command `holdfast`."""

import sys
from importlib import import_module

if __name__ == "__main__":
    # By name: the two stand side by side on the top floor, and neither is built on the other.
    sys.exit(import_module("holdfast.cli").main())
