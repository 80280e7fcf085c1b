"""Holdfast: a session runtime for AI agents. It gives an agent real tools and keeps the person in charge.

    async with holdfast.open(model, workspace="project") as session:
        outcome = await session.send("Tidy up the README.")

Names are loaded when they are first used, so that importing the package stays fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.app import Runtime, open
    from holdfast.core import Limits, Outcome, Response
    from holdfast.models import ScriptedModel, use
    from holdfast.session import Session

__version__ = "0.1.0"

_HOMES = {
    "Limits": "holdfast.core",
    "Outcome": "holdfast.core",
    "Response": "holdfast.core",
    "Runtime": "holdfast.app",
    "ScriptedModel": "holdfast.models",
    "Session": "holdfast.session",
    "open": "holdfast.app",
    "use": "holdfast.models",
}

__all__ = ["Limits", "Outcome", "Response", "Runtime", "ScriptedModel", "Session", "__version__", "open", "use"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
