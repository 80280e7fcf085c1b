"""Model specs: the one-line names of models in options, configuration and journals.

How a model is asked: the part of the configuration that models read.
"""

from typing import Literal, get_args
from urllib.parse import urlsplit

from holdfast.core import Value
from holdfast.core.errors import InvalidConfig

Provider = Literal["anthropic", "openai", "openai-chat", "google", "ollama", "server", "local", "scripted"]

OLLAMA_URL = "http://127.0.0.1:11434/v1"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_FORMS = (
    "anthropic:NAME, openai:NAME, openai-chat:NAME, google:NAME, ollama:NAME, server:http://HOST:PORT/v1#NAME, "
    "local:FILE.gguf or scripted:FILE.json"
)


class ModelSpec(Value):
    """A spec taken apart. `base_url` is empty for the provider's own address."""

    provider: Provider
    name: str
    base_url: str = ""

    def __str__(self) -> str:
        if self.provider == "server":
            return f"server:{self.base_url}#{self.name}"
        return f"{self.provider}:{self.name}"

    @property
    def is_on_this_machine(self) -> bool:
        """Whether nothing leaves the machine to reach it."""
        if self.provider in ("local", "scripted"):
            return True
        return is_loopback(self.base_url)


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    return urlsplit(url).hostname in _LOOPBACK


def parse_spec(text: str) -> ModelSpec:
    """The spec in a text, or InvalidConfig with the forms there are."""
    head, colon, name = text.strip().partition(":")
    provider = next((known for known in get_args(Provider) if known == head), None)
    if provider is None or not colon or not name:
        raise InvalidConfig(f"{text!r} names no model", hint=f"use one of {_FORMS}")
    if provider == "ollama":
        return ModelSpec(provider=provider, name=name, base_url=OLLAMA_URL)
    if provider == "server":
        return _parse_server(text, name)
    return ModelSpec(provider=provider, name=name)


def check_address(url: str) -> str:
    """The address, or InvalidConfig where a prompt or a key would not be safe on its way there."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidConfig(f"{url!r} is no address", hint="write it as https://HOST/v1")
    if parts.username or parts.password:
        raise InvalidConfig(
            "an address with a password in it would end up in the journal", hint="put the key into a variable"
        )
    if parts.scheme == "http" and not is_loopback(url):
        raise InvalidConfig(
            f"{parts.hostname!r} is not on this machine and its address is not encrypted",
            hint="use https, or forward a port of this machine to it",
        )
    return url.rstrip("/")


def _parse_server(text: str, rest: str) -> ModelSpec:
    url, _, name = rest.partition("#")
    address = check_address(url)
    if not name:
        raise InvalidConfig(f"{text!r} says no model", hint=f"add its name, as in server:{address}#NAME")
    return ModelSpec(provider="server", name=name, base_url=address)


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
