"""List, check and install models, and show prices.

holdfast model list                  the configured model, and the available ones
holdfast model check                 send a test request with a tool; PROVIDER:NAME checks another model
holdfast model prices openai:gpt-5   the price of a million tokens, and the date of the price list
holdfast model install               a small model for this machine, about 1.1 GB
"""

import argparse
import os
from pathlib import Path

import msgspec

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.config import load_config
from holdfast.core import UserMessage, pluralize
from holdfast.core.errors import InvalidInput, ModelMissing
from holdfast.models import (
    DEFAULTS,
    QWEN_CODER,
    WEIGHTS,
    LocalServer,
    ModelSettings,
    PriceList,
    Prompt,
    ToolOffer,
    Weights,
    create_model,
    install_file,
    install_weights,
    keys_present,
    local_servers,
    price,
    price_list,
    resolve_model,
)
from holdfast.store import Home

_TOOL = ToolOffer(
    name="add",
    description="Add two numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the subcommands."""
    actions = parser.add_subparsers(dest="action", required=True)
    listed = actions.add_parser("list", help="show the configured model and the available ones")
    listed.add_argument("--json", action="store_true", help="a JSON object on stdout")
    check = actions.add_parser("check", help="send a test request with a tool")
    check.add_argument("model", nargs="?", metavar="PROVIDER:NAME", help="default: the configured one")
    prices = actions.add_parser("prices", help="show the price of a million tokens")
    prices.add_argument("models", nargs="*", metavar="PROVIDER:NAME", help="default: the usual ones")
    prices.add_argument("--json", action="store_true", help="a JSON object on stdout")
    install = actions.add_parser("install", help="a small model for this machine")
    install.add_argument("name", nargs="?", default=QWEN_CODER.name, help=f"default: {QWEN_CODER.name}")
    install.add_argument(
        "--file", type=Path, help="a GGUF file that is here already; it must be the very same"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    console = Console()
    match arguments.action:
        case "list":
            return await _list(console, is_json=arguments.json)
        case "check":
            return await _check(console, arguments.model)
        case "prices":
            return _prices(console, tuple(arguments.models), is_json=arguments.json)
        case _:
            return await _install(console, arguments.name, arguments.file)


class _Choices(msgspec.Struct, frozen=True, kw_only=True):
    configured: str | None
    keys: tuple[str, ...]
    servers: tuple[LocalServer, ...]
    installed: tuple[str, ...]


async def _list(console: Console, *, is_json: bool) -> int:
    folder = Home.default().models
    with ProgressIndicator(lambda: "looking for local servers"):
        servers = await local_servers()
    choices = _Choices(
        configured=_configured()[0],
        keys=keys_present(os.environ),
        servers=servers,
        installed=tuple(
            f"local:{weights.name}" for weights in WEIGHTS.values() if (folder / weights.file).is_file()
        ),
    )
    if is_json:
        console.json(choices)
        return exit_codes.OK
    console.print(f"configured  {choices.configured or 'none'}")
    console.print(f"keys        {', '.join(choices.keys) or 'none in the environment'}")
    for server in choices.servers:
        console.print(f"{server.title:<11} {', '.join(server.models) or 'running, but has no model'}")
    for spec in choices.installed:
        console.print(f"installed   {spec}")
    if choices.configured is None and not choices.servers and not choices.installed:
        console.say("hint: set a key, start a local server (Ollama), or: holdfast model install")
    return exit_codes.OK


async def _check(console: Console, given: str | None) -> int:
    configured, settings = _configured()
    spec = given or configured
    if spec is None:
        raise ModelMissing("no model is configured", hint="list the available ones with: holdfast model list")
    model = create_model(spec, settings=settings)
    try:
        request = UserMessage(text="Use the tool to add 19 and 23.")
        prompt = Prompt(system="Use the tools you have.", messages=(request,), tools=(_TOOL,), max_tokens=500)
        with ProgressIndicator(lambda: f"asking {model.name}"):
            reply = await model.ask(prompt, lambda _: None)
    finally:
        await model.close()
    usage = reply.usage
    cost = "unknown" if usage.cost_usd is None else f"{usage.cost_usd} USD"
    is_right = [(call.tool, call.arguments) for call in reply.message.tool_calls] == [
        ("add", {"a": 19, "b": 23})
    ]
    console.print(
        f"answers     yes ({pluralize(usage.input_tokens, 'token')} in, {usage.output_tokens} out, cost {cost})"
    )
    console.print(f"uses tools  {'yes' if is_right else 'no: it did not make the requested call'}")
    console.print(f"window      {model.context_tokens or 'unknown'} tokens")
    if spec.startswith("local:"):
        console.say(
            "a small local model can do tasks that fit into one short program; expect it to fail at tasks with several "
            "dependent steps, and do not rely on it for facts"
        )
    return exit_codes.OK if is_right else exit_codes.ERROR


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    input_usd: str | None
    output_usd: str | None
    context_tokens: int | None


class _Prices(msgspec.Struct, frozen=True, kw_only=True):
    prices: tuple[_Listed, ...]
    list: PriceList


def _prices(console: Console, given: tuple[str, ...], *, is_json: bool) -> int:
    configured = _configured()[0]
    specs = given or tuple(dict.fromkeys([*([configured] if configured else []), *DEFAULTS.values()]))
    found = _Prices(prices=tuple(_listed(spec) for spec in specs), list=price_list())
    if is_json:
        console.json(found)
        return exit_codes.OK
    console.print(f"{'model':<40} {'input':>10} {'output':>10} {'window':>10}")
    for row in found.prices:
        window = row.context_tokens or "unknown"
        console.print(
            f"{row.model:<40} {row.input_usd or 'unknown':>10} {row.output_usd or 'unknown':>10} {window:>10}"
        )
    console.say(f"US dollars per million tokens, from {found.list.source} of {found.list.dated} or later")
    return exit_codes.OK


def _listed(spec: str) -> _Listed:
    found = price(spec)
    if found is None:
        return _Listed(model=spec, input_usd=None, output_usd=None, context_tokens=None)
    return _Listed(
        model=spec,
        input_usd=f"{found.input_usd:.2f}",
        output_usd=f"{found.output_usd:.2f}",
        context_tokens=found.context_tokens,
    )


async def _install(console: Console, name: str, file: Path | None) -> int:
    weights = WEIGHTS.get(name)
    if weights is None:
        raise InvalidInput(f"there is no {name!r} to install", hint=f"one of: {', '.join(WEIGHTS)}")
    folder = Home.default().models
    console.say(f"{weights.title}, {weights.size / 1e9:.1f} GB, licence {weights.licence}, into {folder}")
    if file is not None:
        with ProgressIndicator(lambda: f"checks {file}"):
            path = await install_file(weights, file, folder)
    else:
        path = await _fetched(weights, folder)
    console.say(f"installed and checked: SHA-256 {weights.digest}", "good")
    console.print(str(path))
    console.say(f"use it with: holdfast --model local:{weights.name}   (holdfast doctor says what it needs)")
    return exit_codes.OK


async def _fetched(weights: Weights, folder: Path) -> Path:
    fetched = 0

    def note(done: int, total: int) -> None:
        nonlocal fetched
        fetched = done

    with ProgressIndicator(
        lambda: f"fetches {weights.name}: {fetched / 1e6:,.0f} of {weights.size / 1e6:,.0f} MB"
    ):
        return await install_weights(weights, folder, on_progress=note)


def _configured() -> tuple[str | None, ModelSettings]:
    config = load_config(Home.default())
    settings = msgspec.structs.replace(config.asking, model=config.model or config.asking.model)
    return resolve_model(os.environ, settings), settings
