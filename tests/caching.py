"""Where tests keep what takes long to make: inside the virtual environment, so that nothing is left behind elsewhere."""

import sys
from pathlib import Path


def cache_folder(name: str) -> Path:
    """A folder that lasts as long as the environment does."""
    return Path(sys.prefix) / "test-cache" / name
