"""API keys: where they are read from, and which model is the default if a key is set.

A key is read when a model is created and stays in its HTTP client. It never appears in a setting, a spec or an event.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from holdfast.core.errors import ModelMissing
from holdfast.models.providers import PROVIDERS
from holdfast.models.specs import ModelSettings

KEYRING_SERVICE = "holdfast"
_MIN_SECRET_LENGTH = 8


def resolve_model(environ: Mapping[str, str], configured: str | None = None) -> str | None:
    """The spec of the model to use: $HOLDFAST_MODEL, the configured one, or the default for a key that is set."""
    if named := environ.get("HOLDFAST_MODEL", "").strip():
        return named
    if configured:
        return configured
    return next(
        (
            provider.default_model
            for provider in PROVIDERS.values()
            if provider.default_model and _key_in_environment(provider.name, environ)
        ),
        None,
    )


def keys_present(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The providers whose key is in the environment."""
    return tuple(name for name in PROVIDERS if _key_in_environment(name, environ))


def find_key(provider: str, environ: Mapping[str, str], settings: ModelSettings) -> str | None:
    """The API key for a provider, or None if it needs none. Raises ModelMissing if it needs one and none is found."""
    if settings.key_variable:
        key = environ.get(settings.key_variable, "").strip()
        if not key:
            raise ModelMissing(
                f"the configuration takes the API key from ${settings.key_variable}, which is not set",
                hint=f"set ${settings.key_variable}, or remove key_variable from the configuration",
            )
        return key
    key = _key_in_environment(provider, environ) or keyring_secret(provider) or ""
    if key:
        return key
    if PROVIDERS[provider].needs_key:
        names = " or ".join(f"${name}" for name in PROVIDERS[provider].key_variables)
        raise ModelMissing(
            f"there is no API key for {provider}",
            hint=f"set {names}, store one with `keyring set {KEYRING_SERVICE} {provider}`, or use a local model",
        )
    return None


def key_variables(settings: ModelSettings | None = None) -> frozenset[str]:
    """The environment variables that hold a provider's API key."""
    usual = {name for provider in PROVIDERS.values() for name in provider.key_variables}
    return frozenset(usual | ({settings.key_variable} if settings and settings.key_variable else set()))


def usual_key_variables() -> tuple[str, ...]:
    """The first variable of each provider that has a default model, in the order in which they are read."""
    return tuple(each.key_variables[0] for each in PROVIDERS.values() if each.default_model)


def secrets(environ: Mapping[str, str], settings: ModelSettings | None = None) -> tuple[str, ...]:
    """The values of all API keys in the environment, to redact from records.

    `api_key_of` returns the key of a model that was created with one from the keyring.
    """
    values = (environ.get(name, "").strip() for name in sorted(key_variables(settings)))
    # A shorter value is a placeholder; redacting it would garble ordinary words.
    return tuple(dict.fromkeys(value for value in values if len(value) >= _MIN_SECRET_LENGTH))


def _key_in_environment(provider: str, environ: Mapping[str, str]) -> str | None:
    found = (environ.get(name, "").strip() for name in PROVIDERS[provider].key_variables)
    return next((key for key in found if key), None)


def keyring_secret(name: str) -> str | None:
    """An entry of the person's keyring; None if there is none, or no keyring."""
    try:
        keyring: Any = importlib.import_module("keyring")  # Any: an optional library without types
    except ImportError:
        return None
    try:
        stored = keyring.get_password(KEYRING_SERVICE, name)
    except keyring.errors.KeyringError:  # no backend, or it is locked: the same as no key
        return None
    return stored.strip() if isinstance(stored, str) else None
