"""The part of the engine that runs inside the sandbox, in CPython for WASI, next to untrusted code.

Holdfast does not import this package; `build_main` builds it into the component under the name `guest`. Nothing here protects the
host: the untrusted code shares the interpreter and can change all of it, so the host checks every reply.

INVARIANT: saved variables are pickles that refer to `guest.state`, `guest.tools.Verb`, `guest.tools.Group` and `guest.entry._call` by
name, and to the attributes of `Verb` and `Group`. Renaming one of them makes the saved variables of existing sessions unreadable.
"""
