"""The command line of this installation of Holdfast, for programs that start it in a folder that an agent may write."""

import sys


def module_command() -> tuple[str, ...]:
    """`python -P -m holdfast`. Without `-P`, Python would import `argparse` from a file of that name in the current folder."""
    return (sys.executable, "-P", "-m", "holdfast")
