"""Checks of models, MCP servers and notifications.

Models: which one a session would use, and whether it has a key; nothing is sent. MCP servers: each is started as a session would
start it, in an empty folder. Notifications: what did not arrive lately; nothing is sent.
"""

import os
import tempfile
from collections.abc import Collection
from pathlib import Path

from holdfast.config import load_config
from holdfast.core import SystemClock, format_age, pluralize
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
from holdfast.services.doctor.check_result import CheckResult, State
from holdfast.services.notifications import check_target, read_failures
from holdfast.store import Home

_RECENT_MS = 7 * 24 * 60 * 60 * 1000


async def check_models(home: Home) -> list[CheckResult]:
    """Report the keys in the environment and the model that a session would use."""
    keys = keys_present(os.environ)
    detail = f"for {', '.join(keys)}" if keys else "none in the environment"
    state: State = "ok" if keys else "note"
    return [
        CheckResult(part="keys", state=state, detail=detail, fix="export ANTHROPIC_API_KEY=..."),
        await _model(home, *_settings(home)),
    ]


async def _model(home: Home, configured: str | None, settings: ModelSettings) -> CheckResult:
    spec = resolve_model(os.environ, configured)
    if spec is None:
        servers = [model for server in await local_servers() for model in server.models]
        fix = (
            f"holdfast config set model {servers[0]}"
            if servers
            else "set a key, or start Ollama or llama-server"
        )
        return CheckResult(part="model", state="bad", detail="no model is configured", fix=fix)
    try:
        model = create_model(spec, settings=settings, models_folder=home.models)
    except HoldfastError as error:
        return CheckResult(
            part="model", state="bad", detail=f"{spec}: {error}", fix=error.hint or "holdfast model list"
        )
    await model.close()
    return CheckResult(part="model", state="ok", detail=f"{spec} (test it with: holdfast model check)")


def _settings(home: Home) -> tuple[str | None, ModelSettings]:
    try:
        config = load_config(home)
    except HoldfastError:
        return None, ModelSettings()  # the configuration is checked separately
    return config.model, config.model_requests


async def check_servers(home: Home) -> list[CheckResult]:
    """Start each server and report problems with its tools."""
    files = McpFiles(home.root)
    try:
        specs = files.servers()
    except HoldfastError as error:
        return [
            CheckResult(part="mcp", state="bad", detail=str(error), fix=error.hint or "fix mcp-servers.json")
        ]
    if not specs:
        detail = "no servers configured (holdfast mcp add NAME -- COMMAND)"
        return [CheckResult(part="mcp", state="ok", detail=detail)]
    keys = key_variables(load_config(home).model_requests)
    return [await _check_server(files, spec, keys) for spec in specs]


async def _check_server(files: McpFiles, spec: ServerSpec, keys: Collection[str]) -> CheckResult:
    part, fix = f"mcp {spec.name}", f"holdfast mcp doctor {spec.name}"
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-doctor-") as folder:
            async with McpToolset(
                spec, workspace=Path(folder), pins=files.pins, annotations=files.annotations(), keys=keys
            ) as toolset:
                await toolset.start()
                problems, tools = health_problems(toolset, files.pins), len(toolset.tools())
    except HoldfastError as error:
        return CheckResult(part=part, state="bad", detail=f"does not start: {error}", fix=error.hint or fix)
    if problems:
        return CheckResult(part=part, state="note", detail="; ".join(problems), fix=fix)
    return CheckResult(part=part, state="ok", detail=f"starts, {pluralize(tools, 'tool')}")


async def check_notifications(home: Home) -> list[CheckResult]:
    """Report each target of notifications, and what it did not take in the last week."""
    try:
        targets = load_config(home).notify.targets
    except HoldfastError:
        return []  # the configuration is checked separately
    now_ms = SystemClock().now_ms()
    failures = [each for each in read_failures(home) if now_ms - each.at_ms < _RECENT_MS]
    results = []
    for name, target in targets.items():
        part, fix = f"notify {name}", f"holdfast notify test {name}"
        try:
            check_target(name, target)
        except HoldfastError as error:
            results.append(CheckResult(part=part, state="bad", detail=str(error), fix=error.hint or fix))
            continue
        missed = [each for each in failures if each.target == name]
        if missed:
            age = format_age(max(0, now_ms - missed[-1].at_ms))
            detail = f"{pluralize(len(missed), 'notification')} not sent in 7 days, the last {age} ago: {missed[-1].reason}"
            results.append(CheckResult(part=part, state="note", detail=detail, fix=fix))
        else:
            results.append(CheckResult(part=part, state="ok", detail=f"test it with: {fix}"))
    return results
