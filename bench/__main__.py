"""Run one benchmark by name, or all."""

import sys
from importlib import import_module
from pathlib import Path

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def main() -> None:
    """Run the benchmarks named on the command line."""
    for name in sys.argv[1:] or NAMES:
        if name not in NAMES:
            sys.exit(f"bench: there is no {name!r}; there are: {', '.join(NAMES)}")
        print(f"== {name}", flush=True)
        import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main()
