"""Holdfast: a session runtime for AI agents. It gives an agent real tools and keeps you in charge.

    async with holdfast.open(model, workspace="project") as session:
        outcome = await session.send("Tidy up the README.")

Names are loaded at first use, so that importing the package stays fast. `__init__.pyi` declares them for type checkers.
"""

from importlib import import_module

__version__ = "0.1.0"

_SOURCES = {
    "Limits": "holdfast.core",
    "Outcome": "holdfast.core",
    "Response": "holdfast.core",
    "Runtime": "holdfast.app",
    "ScriptedModel": "holdfast.models",
    "Session": "holdfast.session",
    "Settings": "holdfast.session",
    "load_config": "holdfast.config",
    "open": "holdfast.app",
    "use": "holdfast.models",
}

__all__ = [*sorted(_SOURCES), "__version__"]


def __getattr__(name: str) -> object:
    if name == "workspace":
        return import_module("holdfast.workspace")
    if name not in _SOURCES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(import_module(_SOURCES[name]), name)
