"""Models: which one would be asked, and whether there is a key for it. Nothing is sent."""

import os

import msgspec

from holdfast.cli.checkup.finding import Finding, State
from holdfast.config import load_config
from holdfast.core.errors import HoldfastError
from holdfast.models import ModelSettings, keys_present, local_servers, open_model, resolve_model
from holdfast.store import Home


async def check_models(home: Home) -> list[Finding]:
    """The keys that are there, and the model that follows."""
    keys = keys_present(os.environ)
    told = f"for {', '.join(keys)}" if keys else "none in the environment"
    state: State = "ok" if keys else "note"
    return [
        Finding(part="keys", state=state, told=told, fix="export ANTHROPIC_API_KEY=..."),
        await _model(home, _settings(home)),
    ]


async def _model(home: Home, settings: ModelSettings) -> Finding:
    spec = resolve_model(os.environ, settings)
    if spec is None:
        servers = [model for server in await local_servers() for model in server.models]
        fix = f"holdfast config set model {servers[0]}" if servers else "set a key, or holdfast model install"
        return Finding(part="model", state="bad", told="no model is configured", fix=fix)
    try:
        model = open_model(spec, settings=settings, weights=home.models)
    except HoldfastError as error:
        return Finding(
            part="model", state="bad", told=f"{spec}: {error}", fix=error.hint or "holdfast model list"
        )
    await model.close()
    return Finding(part="model", state="ok", told=f"{spec} (holdfast model check asks it once)")


def _settings(home: Home) -> ModelSettings:
    try:
        config = load_config(home)
    except HoldfastError:
        return ModelSettings()  # the configuration has a finding of its own
    return msgspec.structs.replace(config.asking, model=config.model or config.asking.model)
