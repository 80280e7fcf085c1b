"""Benchmarks of Holdfast and its peers, side by side in one run. `python -m bench NAME`, or all without a name."""
