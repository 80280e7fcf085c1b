"""Providers: the one table that says how each provider is named, reached, paid and built.

To add a provider, add an entry to `PROVIDERS` and, if its library is not installed yet, an extra. A provider's
library loads when `build` is called, not with this module.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from holdfast.core import Value

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model as LibraryModel

OLLAMA_URL = "http://127.0.0.1:11434/v1"


class Provider(Value):
    """One provider of models that is reached over HTTP."""

    name: str
    """The part of a model spec before the colon."""
    key_variables: tuple[str, ...]
    """Environment variables for the API key; the first one that is set counts. No child process inherits them."""
    build: "Callable[[str, str, str, httpx2.AsyncClient], LibraryModel]"
    """Builds the library's model from model name, address, API key and HTTP client."""
    needs_key: bool = True
    address: str = ""
    """The default address; empty if the model spec contains it."""
    address_variable: str = ""
    """An environment variable that overrides the default address."""
    price_list_id: str = ""
    """The provider's id in genai-prices; empty if it has no price list."""
    library: str = ""
    """The module that an extra of the same name as the provider installs; empty if it is always installed."""
    default_model: str = ""
    """The spec to use if all we know is that a key for this provider is set."""
    spec_form: str = ""
    """How its specs are written, if not as `name:NAME`."""


def _build_anthropic(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(name, provider=AnthropicProvider(api_key=key, base_url=address, http_client=client))


def _build_openai(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
    from pydantic_ai.providers.openai import OpenAIProvider

    _finish_event_types()
    provider = OpenAIProvider(api_key=key, base_url=address, http_client=client)
    # The journal is the record; the provider does not need to store a copy.
    return OpenAIResponsesModel(
        name, provider=provider, settings=OpenAIResponsesModelSettings(openai_store=False)
    )


def _finish_event_types() -> None:
    """Build the validators of the stream's events. The library leaves it to the first reply, which would take half a second more."""
    from typing import get_args

    from openai.types.responses import ResponseStreamEvent

    for event in get_args(get_args(ResponseStreamEvent)[0]):
        event.model_rebuild()


def _build_openai_chat(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(name, provider=OpenAIProvider(api_key=key, base_url=address, http_client=client))


def _build_google(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(name, provider=GoogleProvider(api_key=key, base_url=address, http_client=client))


def _build_ollama(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.ollama import OllamaProvider

    return OpenAIChatModel(name, provider=OllamaProvider(api_key=key, base_url=address, http_client=client))


def _build_server(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    provider = OpenAICompatibleProvider("server", base_url=address, api_key=key, http_client=client)
    return OpenAIChatModel(name, provider=provider)


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            name="anthropic",
            key_variables=("ANTHROPIC_API_KEY",),
            build=_build_anthropic,
            address="https://api.anthropic.com",
            address_variable="ANTHROPIC_BASE_URL",
            price_list_id="anthropic",
            default_model="anthropic:claude-sonnet-5-5",
        ),
        Provider(
            name="openai",
            key_variables=("OPENAI_API_KEY",),
            build=_build_openai,
            address="https://api.openai.com/v1",
            address_variable="OPENAI_BASE_URL",
            price_list_id="openai",
            default_model="openai:gpt-6.1-terra",
        ),
        Provider(
            name="openai-chat",
            key_variables=("OPENAI_API_KEY",),
            build=_build_openai_chat,
            address="https://api.openai.com/v1",
            address_variable="OPENAI_BASE_URL",
            price_list_id="openai",
        ),
        Provider(
            name="google",
            key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            build=_build_google,
            address="https://generativelanguage.googleapis.com",
            address_variable="GOOGLE_GEMINI_BASE_URL",
            price_list_id="google",
            library="google.genai",
            default_model="google:gemini-3.8-flash",
        ),
        Provider(
            name="ollama",
            key_variables=("OLLAMA_API_KEY",),
            build=_build_ollama,
            needs_key=False,
            address=OLLAMA_URL,
        ),
        Provider(
            name="server",
            key_variables=("HOLDFAST_SERVER_KEY",),
            build=_build_server,
            needs_key=False,
            spec_form="server:http://HOST:PORT/v1#NAME",
        ),
    )
}
"""Every provider by name. Order matters: the first one with a key and a default model is the default."""

DEFAULT_MODELS: tuple[str, ...] = tuple(
    provider.default_model for provider in PROVIDERS.values() if provider.default_model
)
"""The spec of each provider that has a default model."""
