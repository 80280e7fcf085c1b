"""The init process of a sandbox (PID 1 in its namespaces) and the supervisor of each command.

These modules run on the bare interpreter, before and beside untrusted programs: they import the standard library's cheap
modules, `holdfast.process` and each other, nothing else.
"""
