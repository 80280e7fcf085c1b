"""One module a command: `configure` names its arguments, `run` does the work and returns an exit code.

A module whose work may take long, and which asks the person nothing, says in `WORKING` what it does meanwhile.
"""
