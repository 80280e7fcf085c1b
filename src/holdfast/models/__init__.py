"""Language models behind one contract: providers, the scripted twin, what a reply costs.

The libraries of the providers load when a real model is opened, not with this package.
"""

from holdfast.models.contract import Model, OnText, Prompt, Reply, ToolOffer, api_key_of
from holdfast.models.factory import create_model
from holdfast.models.keys import DEFAULTS, find_key, key_variables, keys_present, resolve_model, secrets
from holdfast.models.local import (
    QWEN_CODER,
    WEIGHTS,
    LocalModel,
    Weights,
    install_file,
    install_weights,
)
from holdfast.models.local_servers import LocalServer, local_servers
from holdfast.models.prices import Price, PriceList, price, price_list, price_of
from holdfast.models.retry import RetryPolicy
from holdfast.models.scripted import ScriptedModel, ScriptedReply, say, use, use_all
from holdfast.models.specs import ModelSettings, ModelSpec, parse_spec
from holdfast.models.toolset import MODEL_TOOLS, ModelToolset

__all__ = [
    "DEFAULTS",
    "MODEL_TOOLS",
    "QWEN_CODER",
    "WEIGHTS",
    "LocalModel",
    "LocalServer",
    "Model",
    "ModelSettings",
    "ModelSpec",
    "ModelToolset",
    "OnText",
    "Price",
    "PriceList",
    "Prompt",
    "Reply",
    "RetryPolicy",
    "ScriptedModel",
    "ScriptedReply",
    "ToolOffer",
    "Weights",
    "api_key_of",
    "create_model",
    "find_key",
    "install_file",
    "install_weights",
    "key_variables",
    "keys_present",
    "local_servers",
    "parse_spec",
    "price",
    "price_list",
    "price_of",
    "resolve_model",
    "say",
    "secrets",
    "use",
    "use_all",
]
