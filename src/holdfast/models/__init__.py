"""Language models behind one contract: providers, the scripted twin, what a reply costs.

The libraries of the providers load when a real model is opened, not with this package.
"""

from holdfast.models.contract import Model, OnText, Prompt, Reply, ToolOffer
from holdfast.models.scripted import ScriptedModel, ScriptedReply, say, use, use_all

__all__ = [
    "Model",
    "OnText",
    "Prompt",
    "Reply",
    "ScriptedModel",
    "ScriptedReply",
    "ToolOffer",
    "say",
    "use",
    "use_all",
]
