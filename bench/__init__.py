"""Figures against peers, side by side in one run. `python -m bench NAME`, or all of them without a name."""
