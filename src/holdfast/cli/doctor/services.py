"""MCP servers: each started as a session would start it, in an empty folder, and looked at.

Models: which one would be asked, and whether there is a key for it. Nothing is sent.
"""

import os
import tempfile
from collections.abc import Collection
from pathlib import Path

import msgspec

from holdfast.cli.doctor.finding import CheckResult, State
from holdfast.config import load_config
from holdfast.core import pluralize
from holdfast.core.errors import HoldfastError
from holdfast.mcp import McpFiles, McpToolset, ServerSpec, health_problems
from holdfast.models import (
    ModelSettings,
    create_model,
    key_variables,
    keys_present,
    local_servers,
    resolve_model,
)
from holdfast.store import Home


async def check_models(home: Home) -> list[CheckResult]:
    """The keys that are there, and the model that follows."""
    keys = keys_present(os.environ)
    told = f"for {', '.join(keys)}" if keys else "none in the environment"
    state: State = "ok" if keys else "note"
    return [
        CheckResult(part="keys", state=state, told=told, fix="export ANTHROPIC_API_KEY=..."),
        await _model(home, _settings(home)),
    ]


async def _model(home: Home, settings: ModelSettings) -> CheckResult:
    spec = resolve_model(os.environ, settings)
    if spec is None:
        servers = [model for server in await local_servers() for model in server.models]
        fix = f"holdfast config set model {servers[0]}" if servers else "set a key, or holdfast model install"
        return CheckResult(part="model", state="bad", told="no model is configured", fix=fix)
    try:
        model = create_model(spec, settings=settings, weights=home.models)
    except HoldfastError as error:
        return CheckResult(
            part="model", state="bad", told=f"{spec}: {error}", fix=error.hint or "holdfast model list"
        )
    await model.close()
    return CheckResult(part="model", state="ok", told=f"{spec} (holdfast model check asks it once)")


def _settings(home: Home) -> ModelSettings:
    try:
        config = load_config(home)
    except HoldfastError:
        return ModelSettings()  # the configuration has a finding of its own
    return msgspec.structs.replace(config.asking, model=config.model or config.asking.model)


async def check_servers(home: Home) -> list[CheckResult]:
    """Whether each starts, and what is wrong with its tools."""
    shelf = McpFiles(home.root)
    try:
        specs = shelf.servers()
    except HoldfastError as error:
        return [
            CheckResult(part="mcp", state="bad", told=str(error), fix=error.hint or "mend mcp-servers.json")
        ]
    if not specs:
        told = "no servers configured (holdfast mcp add NAME -- COMMAND)"
        return [CheckResult(part="mcp", state="ok", told=told)]
    keys = key_variables(load_config(home).asking)
    return [await _check_server(shelf, spec, keys) for spec in specs]


async def _check_server(shelf: McpFiles, spec: ServerSpec, keys: Collection[str]) -> CheckResult:
    part, fix = f"mcp {spec.name}", f"holdfast mcp doctor {spec.name}"
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-doctor-") as folder:
            async with McpToolset(
                spec, workspace=Path(folder), pins=shelf.pins, annotations=shelf.annotations(), keys=keys
            ) as toolset:
                await toolset.start()
                problems, tools = health_problems(toolset, shelf.pins), len(toolset.tools())
    except HoldfastError as error:
        return CheckResult(part=part, state="bad", told=f"does not start: {error}", fix=error.hint or fix)
    if problems:
        return CheckResult(part=part, state="note", told="; ".join(problems), fix=fix)
    return CheckResult(part=part, state="ok", told=f"starts, {pluralize(tools, 'tool')}")
