"""Run one benchmark by name, or all. What begins with two dashes is for the benchmark."""

import sys
from importlib import import_module
from pathlib import Path

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def main() -> None:
    """Run the benchmarks named on the command line."""
    for name in [word for word in sys.argv[1:] if not word.startswith("--")] or NAMES:
        if name not in NAMES:
            sys.exit(f"bench: there is no {name!r}; there are: {', '.join(NAMES)}")
        print(f"== {name}", flush=True)
        import_module(f"bench.{name}").main()


if __name__ == "__main__":
    main()
