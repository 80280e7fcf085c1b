"""Your MCP servers: which there are, what they offer, and what of it you have accepted.

holdfast mcp add git -- uvx mcp-server-git      add a server, look at its tools, accept them
holdfast mcp list                               every server and its tools
holdfast mcp diff git                           tools that changed since you accepted them
holdfast mcp trust git                          accept them as they are now
holdfast mcp annotate git                       say what the arguments of its tools mean
holdfast mcp doctor                             start every server and tell what is wrong
holdfast mcp remove git
"""

import argparse

from holdfast.cli.mcp_admin import McpAdmin
from holdfast.cli.terminal.console import Console
from holdfast.store import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """One word says what to do."""
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="every server and its tools")
    listing.add_argument("--json", action="store_true", help="a JSON array on stdout")
    for verb, what in (
        ("diff", "tools that changed since you accepted them"),
        ("trust", "accept changed and added tools"),
        ("remove", "forget a server"),
        ("annotate", "say what the arguments of its tools mean"),
    ):
        verbs.add_parser(verb, help=what).add_argument("server", help="its name")
    verbs.choices["trust"].add_argument("tools", nargs="*", help="only these")
    verbs.choices["trust"].add_argument("--yes", action="store_true", help="do not ask")
    verbs.choices["annotate"].add_argument(
        "-m",
        "--model",
        metavar="PROVIDER:NAME",
        help="ask this model too (default: the configured one); none: do not",
    )
    verbs.choices["annotate"].add_argument("--yes", action="store_true", help="take the proposal as it is")
    adding = verbs.add_parser("add", help="add a server")
    adding.add_argument("server", help="a name for it")
    _configure_entry(adding)
    adding.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- COMMAND [ARGUMENT...]", help="how it is started"
    )
    verbs.add_parser("doctor", help="start every server and tell what is wrong").add_argument(
        "server", nargs="?", help="only this one"
    )


def _configure_entry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", help="of a streamable HTTP server")
    parser.add_argument(
        "--variable", action="append", default=[], metavar="NAME", help="hand this variable on"
    )
    parser.add_argument(
        "--sandbox", action="store_true", help="let it write in the workspace only, without network"
    )


def _split_options(arguments: argparse.Namespace) -> argparse.Namespace:
    """The arguments of `add` with those options told apart that argparse took for words of the command."""
    words: list[str] = arguments.command
    if words[:1] and words[0].startswith("-"):
        end = words.index("--") if "--" in words else len(words)
        parser = argparse.ArgumentParser(prog="holdfast mcp add NAME")
        _configure_entry(parser)
        arguments = parser.parse_args(words[:end], arguments)
        arguments.command = words[end + 1 :]
    return arguments


async def run(arguments: argparse.Namespace) -> int:
    """Do what the word says."""
    home = Home.default()
    home.prepare()
    desk = McpAdmin(home, Console())
    match arguments.verb:
        case "list":
            return desk.list_servers(as_json=arguments.json)
        case "diff":
            return await desk.diff(arguments.server)
        case "trust":
            return await desk.trust(arguments.server, arguments.tools, is_sure=arguments.yes)
        case "add":
            return await desk.add(_split_options(arguments))
        case "remove":
            return desk.remove(arguments.server)
        case "annotate":
            return await desk.annotate(arguments.server, model=arguments.model, is_sure=arguments.yes)
        case _:
            return await desk.check_servers(arguments.server)
