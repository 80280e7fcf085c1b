"""Show which models are available, test one, and show prices.

holdfast model list                  the configured model, and other models you could use
holdfast model check                 send one request with a tool to the model, or to the one you name
holdfast model prices openai:gpt-5   what a million tokens cost, and how recent the price list is
"""

import argparse
import os

import msgspec

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.config import load_config
from holdfast.core import UserMessage, pluralize
from holdfast.core.errors import ModelMissing
from holdfast.models import (
    DEFAULT_MODELS,
    LocalServer,
    ModelSettings,
    PriceList,
    Prompt,
    ToolOffer,
    create_model,
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
    """Declare the actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True)
    listed = actions.add_parser("list", help="the configured model, and other models you could use")
    listed.add_argument("--json", action="store_true", help="print a JSON object")
    check = actions.add_parser("check", help="send one request with a tool")
    check.add_argument("model", nargs="?", metavar="PROVIDER:NAME", help="default: the configured model")
    prices = actions.add_parser("prices", help="what a million tokens cost")
    prices.add_argument(
        "models",
        nargs="*",
        metavar="PROVIDER:NAME",
        help="default: the configured model and each provider's default",
    )
    prices.add_argument("--json", action="store_true", help="print a JSON object")


async def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    console = Console()
    match arguments.action:
        case "list":
            return await _list(console, is_json=arguments.json)
        case "check":
            return await _check(console, arguments.model)
        case _:
            return _prices(console, tuple(arguments.models), is_json=arguments.json)


class _AvailableModels(msgspec.Struct, frozen=True, kw_only=True):
    configured: str | None
    keys: tuple[str, ...]
    servers: tuple[LocalServer, ...]
    installed: tuple[str, ...]


async def _list(console: Console, *, is_json: bool) -> int:
    with ProgressIndicator(lambda: "looking for local servers"):
        servers = await local_servers()
    available = _AvailableModels(
        configured=_configured()[0],
        keys=keys_present(os.environ),
        servers=servers,
        installed=tuple(f"local:{path.stem}" for path in sorted(Home.default().models.glob("*.gguf"))),
    )
    if is_json:
        console.json(available)
        return exit_codes.OK
    console.print(f"configured  {available.configured or 'none'}")
    console.print(f"keys        {', '.join(available.keys) or 'none in the environment'}")
    for server in available.servers:
        console.print(f"{server.title:<11} {', '.join(server.models) or 'running, but has no model'}")
    for spec in available.installed:
        console.print(f"installed   {spec}")
    if available.configured is None and not available.servers and not available.installed:
        console.say("hint: set an API key, or start a local server such as Ollama")
    return exit_codes.OK


async def _check(console: Console, named: str | None) -> int:
    configured, settings = _configured()
    spec = named or configured
    if spec is None:
        raise ModelMissing("no model is configured", hint="holdfast model list shows what you could use")
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
    made_the_call = [(call.tool, call.arguments) for call in reply.message.tool_calls] == [
        ("add", {"a": 19, "b": 23})
    ]
    console.print(
        f"answers     yes ({pluralize(usage.input_tokens, 'token')} in, {usage.output_tokens} out, cost {cost})"
    )
    console.print(f"uses tools  {'yes' if made_the_call else 'no: it did not make the requested call'}")
    console.print(f"window      {model.context_tokens or 'unknown'} tokens")
    if spec.startswith("local:"):
        console.say(
            "a small local model can do tasks that fit into one short program; expect it to fail if one result decides "
            "the next step, and check every fact it states"
        )
    return exit_codes.OK if made_the_call else exit_codes.ERROR


class _ModelPrice(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    input_usd: str | None
    output_usd: str | None
    context_tokens: int | None


class _Prices(msgspec.Struct, frozen=True, kw_only=True):
    prices: tuple[_ModelPrice, ...]
    list: PriceList


def _prices(console: Console, named: tuple[str, ...], *, is_json: bool) -> int:
    configured = _configured()[0]
    specs = named or tuple(dict.fromkeys([*([configured] if configured else []), *DEFAULT_MODELS]))
    found = _Prices(prices=tuple(_price_row(spec) for spec in specs), list=price_list())
    if is_json:
        console.json(found)
        return exit_codes.OK
    console.print(f"{'model':<40} {'input':>10} {'output':>10} {'window':>10}")
    for row in found.prices:
        window = row.context_tokens or "unknown"
        console.print(
            f"{row.model:<40} {row.input_usd or 'unknown':>10} {row.output_usd or 'unknown':>10} {window:>10}"
        )
    console.say(f"US dollars per million tokens, {found.list.source} of {found.list.dated} or later")
    return exit_codes.OK


def _price_row(spec: str) -> _ModelPrice:
    found = price(spec)
    if found is None:
        return _ModelPrice(model=spec, input_usd=None, output_usd=None, context_tokens=None)
    return _ModelPrice(
        model=spec,
        input_usd=f"{found.input_usd:.2f}",
        output_usd=f"{found.output_usd:.2f}",
        context_tokens=found.context_tokens,
    )


def _configured() -> tuple[str | None, ModelSettings]:
    config = load_config(Home.default())
    return resolve_model(os.environ, config.model), config.model_requests
