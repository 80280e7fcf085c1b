"""The composition root: the only place where things are built. Everything else is handed what it needs."""

from holdfast.app.opening import open
from holdfast.app.runtime import Runtime
from holdfast.app.secrets import redactor

__all__ = ["Runtime", "open", "redactor"]
