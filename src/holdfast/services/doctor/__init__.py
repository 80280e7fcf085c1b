"""The checks of `holdfast doctor`, as values: what this machine lacks, and how to fix it."""
