"""Keys of providers: where they stand, and which model follows from one that is there.

A key is read when a model is opened and lives in its HTTP client only. It is no part of a setting, a spec or an event.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from holdfast.core.errors import ModelMissing
from holdfast.models.specs import ModelSettings, Provider

VARIABLES: Mapping[Provider, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openai-chat": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "ollama": ("OLLAMA_API_KEY",),
    "server": ("HOLDFAST_SERVER_KEY",),
}
"""The variables of each provider, the first that is set counts. None of them goes into the environment of a child."""

DEFAULTS: Mapping[Provider, str] = {
    "anthropic": "anthropic:claude-sonnet-5-5",
    "openai": "openai:gpt-6.1-terra",
    "google": "google:gemini-3.8-flash",
}
"""The model that is used when all we know is that there is a key."""

KEYRING_SERVICE = "holdfast"
_NEEDS_KEY: frozenset[Provider] = frozenset({"anthropic", "openai", "openai-chat", "google"})
_SHORTEST_SECRET = 8


def resolve_model(environ: Mapping[str, str], settings: ModelSettings | None = None) -> str | None:
    """The spec of the configured model: $HOLDFAST_MODEL, then the settings, then a key that is there; else None."""
    if named := environ.get("HOLDFAST_MODEL", "").strip():
        return named
    if settings is not None and settings.model:
        return settings.model
    return next((spec for provider, spec in DEFAULTS.items() if _from_environment(provider, environ)), None)


def keys_present(environ: Mapping[str, str]) -> tuple[Provider, ...]:
    """The providers for which there is a key in the environment."""
    return tuple(provider for provider in VARIABLES if _from_environment(provider, environ))


def find_key(provider: Provider, environ: Mapping[str, str], settings: ModelSettings) -> str | None:
    """The key for a provider, None where it needs none; ModelMissing where it does and there is none."""
    if settings.key_variable:
        key = environ.get(settings.key_variable, "").strip()
        if not key:
            raise ModelMissing(
                f"the configuration takes the key from ${settings.key_variable}, and that is not set",
                hint=f"set ${settings.key_variable}, or take key_variable out of the configuration",
            )
        return key
    key = _from_environment(provider, environ) or _from_keyring(provider) or ""
    if key:
        return key
    if provider in _NEEDS_KEY:
        names = " or ".join(f"${name}" for name in VARIABLES[provider])
        raise ModelMissing(
            f"there is no key for {provider}",
            hint=f"set {names}, store one with `keyring set {KEYRING_SERVICE} {provider}`, or use a local model",
        )
    return None


def key_variables(settings: ModelSettings | None = None) -> frozenset[str]:
    """The variables that hold a key of a provider."""
    usual = {name for variables in VARIABLES.values() for name in variables}
    return frozenset(usual | ({settings.key_variable} if settings and settings.key_variable else set()))


def secrets(environ: Mapping[str, str], settings: ModelSettings | None = None) -> tuple[str, ...]:
    """The exact values of all keys that are in the environment, for whoever writes records to take out.

    A key of the keyring is told by the model that was opened with it: `key_of`.
    """
    values = (environ.get(name, "").strip() for name in sorted(key_variables(settings)))
    # Shorter values are placeholders; taking them out would garble ordinary words.
    return tuple(dict.fromkeys(value for value in values if len(value) >= _SHORTEST_SECRET))


def _from_environment(provider: Provider, environ: Mapping[str, str]) -> str | None:
    found = (environ.get(name, "").strip() for name in VARIABLES.get(provider, ()))
    return next((key for key in found if key), None)


def _from_keyring(provider: Provider) -> str | None:
    try:
        keyring: Any = importlib.import_module("keyring")  # Any: an optional library without types
    except ImportError:
        return None
    try:
        stored = keyring.get_password(KEYRING_SERVICE, provider)
    except keyring.errors.KeyringError:  # no backend, or it is locked: the same as no key
        return None
    return stored.strip() if isinstance(stored, str) else None
