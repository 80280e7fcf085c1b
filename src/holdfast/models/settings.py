"""How a model is asked: the part of the configuration that models read."""

from typing import Literal

from holdfast.core import Value

Reasoning = Literal["minimal", "low", "medium", "high"]


class ModelSettings(Value):
    """Everything about a model but its key, which stands in the environment or a keyring and never in a file of ours."""

    model: str = ""
    """Which model, as in `anthropic:NAME`; empty where it is left to the environment."""
    base_url: str = ""
    """Another address of the same provider: a gateway, a proxy of the company."""
    key_variable: str = ""
    """The variable that holds the key, where it is not the provider's usual one."""
    total_seconds: float = 600.0
    """How long one reply may take, all attempts and waits together."""
    attempts: int = 5
    max_reply_bytes: int = 4_000_000
    """A reply that grows past this is cut off as endless."""
    max_tokens: int | None = None
    """The longest reply to ask for, where the prompt does not say."""
    context_tokens: int | None = None
    """The size of the window, for servers that do not tell."""
    temperature: float | None = None
    thinking: Reasoning | None = None
    local_threads: int = 0
    """Threads of a local model; 0 leaves the choice to it."""
