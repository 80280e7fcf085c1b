"""`create_model` turns a model spec into a model. An API key is read here; a provider's library loads with the first request."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.core.errors import ModelMissing
from holdfast.models.contract import Model
from holdfast.models.deferred_model import DeferredModel
from holdfast.models.keys import find_key
from holdfast.models.prices import context_tokens
from holdfast.models.providers import PROVIDERS, Provider
from holdfast.models.retry import RetryPolicy
from holdfast.models.specs import ModelSettings, ModelSpec, check_address, is_loopback, parse_spec
from holdfast.store import Home

if TYPE_CHECKING:
    import httpx2

_CONNECT_TIMEOUT_SECONDS = 10.0
_LIST_TIMEOUT_SECONDS = 10.0
_NO_KEY = "none"  # the OpenAI client insists on a key; servers that need none ignore it


def create_model(
    spec: str,
    *,
    settings: ModelSettings | None = None,
    environ: Mapping[str, str] | None = None,
    retry_policy: RetryPolicy | None = None,
    models_folder: Path | None = None,
) -> Model:
    """Create the model that a spec names. Raises InvalidConfig, or ModelMissing if its key or its file is missing.

    `models_folder` is where `local:NAME` looks for NAME.gguf; the default is the `models` folder of the data directory.
    """
    settings = settings or ModelSettings()
    environ = os.environ if environ is None else environ
    retry_policy = retry_policy or RetryPolicy(settings.timeout_seconds, settings.max_attempts)
    parsed = parse_spec(spec)
    if parsed.provider == "scripted":
        from holdfast.models.scripted import read_script

        return read_script(Path(parsed.name))
    if parsed.provider == "local":
        from holdfast.models.local import LocalModel

        return LocalModel(
            _gguf_path(parsed.name, models_folder or Home.default().models),
            name=str(parsed),
            settings=settings,
            retry_policy=retry_policy,
        )
    return _create_provider_model(parsed, settings, environ, retry_policy)


def _gguf_path(name: str, models_folder: Path) -> Path:
    """The file for `local:NAME`: a path, or the name of a GGUF file in the models folder."""
    if name.endswith(".gguf") or "/" in name:
        return Path(name).expanduser()
    path = models_folder / f"{name}.gguf"
    if not path.is_file():
        raise ModelMissing(
            f"there is no file {str(path)!r}",
            hint="give the path of a GGUF file: --model local:/path/to/model.gguf",
        )
    return path


def _create_provider_model(
    spec: ModelSpec, settings: ModelSettings, environ: Mapping[str, str], retry_policy: RetryPolicy
) -> Model:
    _check_library(PROVIDERS[spec.provider])
    key = find_key(spec.provider, environ, settings)
    address = _address(spec, settings, environ)

    def build() -> Model:
        from holdfast.models.provider_model import ProviderModel

        client = _client(address, settings, settings.timeout_seconds)
        library = PROVIDERS[spec.provider].build(spec.name, address, key or _NO_KEY, client)
        return ProviderModel(
            spec, library=library, client=client, settings=settings, key=key, retry_policy=retry_policy
        )

    return DeferredModel(
        str(spec),
        key=key,
        context_tokens=lambda: settings.context_tokens or context_tokens(spec),
        build=build,
    )


def _check_library(provider: Provider) -> None:
    """Raise ModelMissing if the provider needs an extra that is not installed. Does not load the library."""
    try:
        is_installed = not provider.library or find_spec(provider.library) is not None
    except ModuleNotFoundError:
        is_installed = False
    if not is_installed:
        raise ModelMissing(
            f"the library for models of {provider.name} is not installed",
            hint=f"pip install 'holdfast[{provider.name}]'",
        )


async def list_models(
    spec: str, *, settings: ModelSettings | None = None, environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """The specs of all models that the provider of this model offers; empty if it has no list.

    Raises ModelMissing, and ModelUnavailable if the provider does not send its list.
    """
    settings, parsed = settings or ModelSettings(), parse_spec(spec)
    environ = os.environ if environ is None else environ
    if parsed.provider not in PROVIDERS:
        return ()
    key = find_key(parsed.provider, environ, settings) or _NO_KEY
    address = _address(parsed, settings, environ)

    from holdfast.models.model_list import read_model_list

    async with _client(address, settings, _LIST_TIMEOUT_SECONDS) as client:
        names = await read_model_list(client, parsed.provider, address, key)
    return tuple(str(msgspec.structs.replace(parsed, name=name)) for name in names)


def _address(spec: ModelSpec, settings: ModelSettings, environ: Mapping[str, str]) -> str:
    return check_address(settings.base_url or spec.base_url or _default_address(spec.provider, environ))


def _client(address: str, settings: ModelSettings, timeout_seconds: float) -> "httpx2.AsyncClient":
    import httpx2

    from holdfast.models.bounded_body import limit_lines

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(timeout_seconds, connect=_CONNECT_TIMEOUT_SECONDS),
        # The environment's proxy is for requests to the network; a request to this machine must not go through it.
        trust_env=not is_loopback(address),
        # A plain address has no certificate to check, and loading the trusted ones takes longer than its answer.
        verify=not address.startswith("http://"),
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [limit_lines(settings.max_reply_bytes)]},
    )


def _default_address(provider: str, environ: Mapping[str, str]) -> str:
    known = PROVIDERS[provider]
    return environ.get(known.address_variable, "").strip() or known.address
