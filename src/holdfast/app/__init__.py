"""The composition root: the only place where things are built. Everything else is handed what it needs."""

from holdfast.app.open import open
from holdfast.app.resources import redactor
from holdfast.app.runtime import Runtime

__all__ = ["Runtime", "open", "redactor"]
