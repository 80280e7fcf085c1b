"""Runs commands one after the other in one process: a list of words for each on standard input, a list of results on standard output."""

import json
import os
import sys
from pathlib import Path

from tests.cli.commands import holdfast

if __name__ == "__main__":
    kept = {name: os.environ[name] for name in ("HOLDFAST_HOME",)}
    finished = [holdfast(*words, home=Path.cwd(), **kept) for words in json.load(sys.stdin)]
    print(json.dumps([(each.returncode, each.stdout, each.stderr) for each in finished]))
