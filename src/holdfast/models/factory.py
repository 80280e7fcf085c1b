"""Opening a model by its spec: the place where a provider's library is loaded and a key is read."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from holdfast.models.contract import Model
from holdfast.models.keys import find_key
from holdfast.models.retry import RetryPolicy
from holdfast.models.specs import ModelSettings, ModelSpec, check_address, is_loopback, parse_spec
from holdfast.store import Home

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model as LibraryModel

_ADDRESSES = {
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "openai-chat": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "google": ("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"),
}
_CONNECT_SECONDS = 10.0
_NO_KEY = "none"  # the client of OpenAI insists on one, servers that ask for none ignore it


def create_model(
    spec: str,
    *,
    settings: ModelSettings | None = None,
    environ: Mapping[str, str] | None = None,
    patience: RetryPolicy | None = None,
    weights: Path | None = None,
) -> Model:
    """The model a spec names, ready to be asked. Raises InvalidConfig, or ModelMissing where its key is missing.

    `weights` is the folder of installed weights, where it is not that of the person's home.
    """
    settings = settings or ModelSettings()
    environ = os.environ if environ is None else environ
    parsed = parse_spec(spec)
    match parsed.provider:
        case "scripted":
            from holdfast.models.scripted import read_script

            return read_script(Path(parsed.name))
        case "local":
            from holdfast.models.local import LocalModel, find_weights

            return LocalModel(
                find_weights(parsed.name, weights or Home.default().models),
                name=str(parsed),
                settings=settings,
                patience=_patience(settings, patience),
            )
        case "anthropic" | "openai" | "openai-chat" | "google" | "ollama" | "server":
            return _open_provider(parsed, settings, environ, _patience(settings, patience))
        case never:
            assert_never(never)


def _patience(settings: ModelSettings, given: RetryPolicy | None) -> RetryPolicy:
    return given or RetryPolicy(settings.total_seconds, settings.attempts)


def _open_provider(
    spec: ModelSpec, settings: ModelSettings, environ: Mapping[str, str], patience: RetryPolicy
) -> Model:
    import httpx2

    from holdfast.models.provider import ProviderModel

    key = find_key(spec.provider, environ, settings)
    address = check_address(settings.base_url or spec.base_url or _address(spec, environ))
    client = httpx2.AsyncClient(
        timeout=httpx2.Timeout(settings.total_seconds, connect=_CONNECT_SECONDS),
        # A proxy of the environment is for the way out; what stays on this machine must not be sent to it.
        trust_env=not is_loopback(address),
        # Certificates take longer to load than a plain address to answer, and it has none to check.
        verify=not address.startswith("http://"),
    )
    library = _BUILDERS[spec.provider](spec.name, address, key or _NO_KEY, client)
    return ProviderModel(spec, library=library, client=client, settings=settings, key=key, patience=patience)


def _address(spec: ModelSpec, environ: Mapping[str, str]) -> str:
    variable, usual = _ADDRESSES[spec.provider]
    return environ.get(variable, "").strip() or usual


def _anthropic(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(name, provider=AnthropicProvider(api_key=key, base_url=address, http_client=client))


def _openai(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(api_key=key, base_url=address, http_client=client)
    # The journal is the record; the provider need not keep another.
    return OpenAIResponsesModel(
        name, provider=provider, settings=OpenAIResponsesModelSettings(openai_store=False)
    )


def _openai_chat(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(name, provider=OpenAIProvider(api_key=key, base_url=address, http_client=client))


def _google(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(name, provider=GoogleProvider(api_key=key, base_url=address, http_client=client))


def _ollama(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.ollama import OllamaProvider

    return OpenAIChatModel(name, provider=OllamaProvider(api_key=key, base_url=address, http_client=client))


def _server(name: str, address: str, key: str, client: "httpx2.AsyncClient") -> "LibraryModel":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    provider = OpenAICompatibleProvider("server", base_url=address, api_key=key, http_client=client)
    return OpenAIChatModel(name, provider=provider)


_BUILDERS: "Mapping[str, Callable[[str, str, str, httpx2.AsyncClient], LibraryModel]]" = {
    "anthropic": _anthropic,
    "openai": _openai,
    "openai-chat": _openai_chat,
    "google": _google,
    "ollama": _ollama,
    "server": _server,
}
