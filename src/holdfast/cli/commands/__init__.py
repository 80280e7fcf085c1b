"""One module per command: `configure` defines its arguments, and `run` does the work and returns an exit code.

A command that may take long and asks no questions defines `PROGRESS`, the text of its progress line.
"""
