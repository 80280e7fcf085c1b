"""Language models behind one contract: providers, local models, a scripted fake, prices and API keys.

A provider's library loads with the first request to one of its models, or by `preload`, not with this package.
"""

from holdfast.models.contract import (
    Model,
    OnPiece,
    PieceKind,
    Prompt,
    Reply,
    ReplyPiece,
    ToolOffer,
    api_key_of,
    preload,
)
from holdfast.models.factory import create_model, list_models
from holdfast.models.keys import (
    find_key,
    key_variables,
    keyring_secret,
    keys_present,
    resolve_model,
    secrets,
    usual_key_variables,
)
from holdfast.models.local import LocalModel
from holdfast.models.local_servers import LocalServer, local_servers
from holdfast.models.media import estimate_media_tokens, media_type_of, takes_media
from holdfast.models.prices import Price, PriceList, price, price_list, price_of
from holdfast.models.providers import DEFAULT_MODELS
from holdfast.models.retry import RetryPolicy
from holdfast.models.scripted import ScriptedModel, ScriptedReply, say, use, use_all
from holdfast.models.specs import ModelSettings, ModelSpec, parse_spec
from holdfast.models.toolset import MODEL_TOOLS, ModelToolset

__all__ = [
    "DEFAULT_MODELS",
    "MODEL_TOOLS",
    "LocalModel",
    "LocalServer",
    "Model",
    "ModelSettings",
    "ModelSpec",
    "ModelToolset",
    "OnPiece",
    "PieceKind",
    "Price",
    "PriceList",
    "Prompt",
    "Reply",
    "ReplyPiece",
    "RetryPolicy",
    "ScriptedModel",
    "ScriptedReply",
    "ToolOffer",
    "api_key_of",
    "create_model",
    "estimate_media_tokens",
    "find_key",
    "key_variables",
    "keyring_secret",
    "keys_present",
    "list_models",
    "local_servers",
    "media_type_of",
    "parse_spec",
    "preload",
    "price",
    "price_list",
    "price_of",
    "resolve_model",
    "say",
    "secrets",
    "takes_media",
    "use",
    "use_all",
    "usual_key_variables",
]
