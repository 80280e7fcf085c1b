"""Walls of the kernel below every sandbox: what a worker's process may still open, call and be, whatever runs in it.

Nothing here imports the rest of Holdfast but the kernel's walls in `core`, nor `typing` or `enum`: a worker puts its walls up before it loads anything
else, and starting one is to cost milliseconds.
"""
