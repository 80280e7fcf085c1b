"""What we hand out and must never write down: keys of providers, and what the entries of servers name."""

import os
from collections.abc import Sequence

from holdfast.mcp import ServerSpec, secrets_of
from holdfast.models import ModelSettings, secrets
from holdfast.store import SHORTEST_SECRET, Redactor


def handed_out(servers: Sequence[ServerSpec], asking: ModelSettings) -> tuple[str, ...]:
    """Every secret we hand out ourselves."""
    named = (one for spec in servers for one in secrets_of(spec, os.environ))
    return (*secrets(os.environ, asking), *named)


def redactor(servers: Sequence[ServerSpec], asking: ModelSettings) -> Redactor:
    """Takes them out of whatever is written."""
    return Redactor(*(secret for secret in handed_out(servers, asking) if len(secret) >= SHORTEST_SECRET))
