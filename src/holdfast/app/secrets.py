"""What we hand out and must never write down: keys of providers, and what the entries of servers name."""

import os
from collections.abc import Sequence

from holdfast.mcp import ServerSpec, secrets_of
from holdfast.models import Model, ModelSettings, key_of, secrets
from holdfast.store import SHORTEST_SECRET, Redactor


def handed_out(
    servers: Sequence[ServerSpec], asking: ModelSettings, model: Model | None = None
) -> tuple[str, ...]:
    """Every secret we hand out ourselves, the key of an open model included: it may come from a keyring."""
    named = (one for spec in servers for one in secrets_of(spec, os.environ))
    return (*secrets(os.environ, asking), *named, *_key(model))


def redactor(servers: Sequence[ServerSpec], asking: ModelSettings) -> Redactor:
    """Takes them out of whatever is written."""
    return Redactor(*(secret for secret in handed_out(servers, asking) if len(secret) >= SHORTEST_SECRET))


def learn_key(redact: Redactor, model: Model | None) -> None:
    """From here on the key of this model is taken out too."""
    for key in _key(model):
        redact.add(key)


def _key(model: Model | None) -> tuple[str, ...]:
    key = key_of(model) or ""
    return (key,) if len(key) >= SHORTEST_SECRET else ()
