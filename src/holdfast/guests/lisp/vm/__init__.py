"""The Lisp machine: compiler, interpreter, limits and snapshots."""
