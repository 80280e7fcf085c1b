"""Model specs: the one-line names of models in options, configuration and journals, and the settings of model requests."""

from typing import Literal
from urllib.parse import urlsplit

from holdfast.core import Value
from holdfast.core.errors import InvalidConfig
from holdfast.models.providers import PROVIDERS

Reasoning = Literal["minimal", "low", "medium", "high"]

_WITHOUT_PROVIDER = {"local": "local:FILE.gguf", "scripted": "scripted:FILE.json"}
"""Models that need no provider, and how their specs are written."""
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class ModelSpec(Value):
    """A parsed spec. `base_url` is empty if the provider's default address applies."""

    provider: str
    """A key of `PROVIDERS`, or `local` or `scripted`."""
    name: str
    base_url: str = ""

    def __str__(self) -> str:
        if self.provider == "server":
            return f"server:{self.base_url}#{self.name}"
        return f"{self.provider}:{self.name}"

    @property
    def is_on_this_machine(self) -> bool:
        """Whether a request to it stays on this machine."""
        return self.provider in _WITHOUT_PROVIDER or is_loopback(self.base_url)


class ModelSettings(Value):
    """How to send requests to a model. The API key is not a setting: it comes from the environment or a keyring."""

    base_url: str = ""
    """Another address for the same provider, for example a company gateway."""
    key_variable: str = ""
    """The environment variable that holds the API key, if it is not the provider's usual one."""
    timeout_seconds: float = 600.0
    """How long one reply may take, including all attempts and the waits between them."""
    max_attempts: int = 5
    """How often one request is sent before it fails."""
    max_reply_bytes: int = 4_000_000
    """The maximum size of a reply. A longer one is cut off and fails."""
    max_tokens: int | None = None
    """The maximum number of tokens in a reply, unless the request sets its own."""
    context_tokens: int | None = None
    """The size of the context window, for servers that do not report it."""
    temperature: float | None = None
    """Sampling temperature. Unset leaves it to the provider; a local model uses 0."""
    thinking: Reasoning | None = None
    """How much the model reasons before it replies, for models that support it."""
    local_threads: int = 0
    """Threads of a local model; 0 lets the engine choose."""


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    return urlsplit(url).hostname in _LOOPBACK


def parse_spec(text: str) -> ModelSpec:
    """Parse a spec. Raises InvalidConfig, with the possible forms as a hint."""
    provider, _, name = text.strip().partition(":")
    if not name or provider not in (*PROVIDERS, *_WITHOUT_PROVIDER):
        raise InvalidConfig(f"{text!r} is not the name of a model", hint=f"use one of {_spec_forms()}")
    if provider == "server":
        return _parse_server(text, name)
    # Ollama's address is part of the spec, because a request to this machine is free.
    base_url = PROVIDERS[provider].address if provider == "ollama" else ""
    return ModelSpec(provider=provider, name=name, base_url=base_url)


def check_address(url: str) -> str:
    """Return the address. Raises InvalidConfig if a prompt or a key would be exposed on the way there."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidConfig(f"{url!r} is not an address", hint="write it as https://HOST/v1")
    if parts.username or parts.password:
        raise InvalidConfig(
            "the address contains a password, which would be recorded in the journal",
            hint="put the key into an environment variable",
        )
    if parts.scheme == "http" and not is_loopback(url):
        raise InvalidConfig(
            f"{parts.hostname!r} is not on this machine and its address is not encrypted",
            hint="use https, or forward a local port to it",
        )
    return url.rstrip("/")


def _spec_forms() -> str:
    *most, last = [
        *(provider.spec_form or f"{provider.name}:NAME" for provider in PROVIDERS.values()),
        *_WITHOUT_PROVIDER.values(),
    ]
    return f"{', '.join(most)} or {last}"


def _parse_server(text: str, rest: str) -> ModelSpec:
    url, _, name = rest.partition("#")
    address = check_address(url)
    if not name:
        raise InvalidConfig(f"{text!r} does not name a model", hint=f"add its name: server:{address}#NAME")
    return ModelSpec(provider="server", name=name, base_url=address)
