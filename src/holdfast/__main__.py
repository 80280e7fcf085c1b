"""`python -m holdfast` runs the command line."""

import sys
from importlib import import_module

if __name__ == "__main__":
    # By name, because this module and `cli` are on the same layer and must not import each other.
    sys.exit(import_module("holdfast.cli").main())
