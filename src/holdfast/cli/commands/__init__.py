"""One module a command: `configure` names its arguments, `run` does the work and returns an exit code."""
