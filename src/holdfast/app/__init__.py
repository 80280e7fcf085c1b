"""The composition root: composes what sessions share. Every other module gets what it needs as arguments."""

from holdfast.app.open import open
from holdfast.app.resources import configured_servers, redactor
from holdfast.app.runtime import Runtime

__all__ = ["Runtime", "configured_servers", "open", "redactor"]
