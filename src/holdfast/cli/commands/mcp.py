"""Manage MCP servers: add them, list their tools, and review what changed.

holdfast mcp add git -- uvx mcp-server-git      add a server, show its tools, accept them
holdfast mcp list                               list all servers and their tools
holdfast mcp diff git                           show tools that changed since you accepted them
holdfast mcp trust git                          accept the changes
holdfast mcp annotate git                       say what the arguments of its tools mean
holdfast mcp doctor                             start all servers and report problems
holdfast mcp remove git
"""

import argparse
import os

from holdfast.cli.mcp_admin import McpAdmin
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.mcp import open_pins
from holdfast.store import STORE_VARIABLE, Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the subcommands."""
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="list all servers and their tools")
    listing.add_argument("--json", action="store_true", help="print a JSON array")
    for verb, what in (
        ("diff", "show tools that changed since you accepted them"),
        ("trust", "accept changed and added tools"),
        ("remove", "remove a server"),
        ("annotate", "say what the arguments of a server's tools mean"),
    ):
        verbs.add_parser(verb, help=what).add_argument("server", help="the server's name")
    verbs.choices["trust"].add_argument("tools", nargs="*", help="accept only these")
    verbs.choices["trust"].add_argument("-y", "--yes", action="store_true", help="accept without asking")
    verbs.choices["annotate"].add_argument(
        "-m",
        "--model",
        metavar="PROVIDER:NAME",
        help="also ask this model (default: the configured one); none: ask no model",
    )
    verbs.choices["annotate"].add_argument(
        "-y", "--yes", action="store_true", help="save the suggestion without asking"
    )
    verbs.choices["annotate"].add_argument(
        "--role",
        action="append",
        default=[],
        metavar="TOOL.ARGUMENT=ROLE[,ROLE...]",
        help="only save these roles, also for an argument that is not in the tool's schema; can be repeated",
    )
    adding = verbs.add_parser("add", help="add a server")
    adding.add_argument("server", help="a name for the server")
    _configure_entry(adding)
    adding.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND [ARGUMENT...]",
        help="the command that starts the server",
    )
    verbs.add_parser("doctor", help="start all servers and report problems").add_argument(
        "server", nargs="?", help="only this server"
    )


def _configure_entry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", help="the address of a server that is not a program")
    parser.add_argument(
        "--variable",
        action="append",
        default=[],
        metavar="NAME",
        help="pass this environment variable to the server",
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set an environment variable of the server; the value is stored in mcp-servers.json as it is: pass a secret with"
        " --variable",
    )
    parser.add_argument(
        "--sandbox",
        action="store_true",
        help="confine it: it writes only in the workspace and has no network",
    )


def _with_options(arguments: argparse.Namespace) -> argparse.Namespace:
    """Parse the options of `add` after the name, which argparse takes for a part of the command."""
    words: list[str] = arguments.command
    if words[:1] and words[0].startswith("-"):
        end = words.index("--") if "--" in words else len(words)
        parser = argparse.ArgumentParser(prog="holdfast mcp add NAME")
        _configure_entry(parser)
        arguments = parser.parse_args(words[:end], arguments)
        arguments.command = words[end + 1 :]
    return arguments


async def run(arguments: argparse.Namespace) -> int:
    """Run one subcommand. With a store that machines share, the accepted definitions are there."""
    home = Home.default()
    home.prepare()
    if not os.environ.get(STORE_VARIABLE):
        return await _run(McpAdmin(home, Console()), arguments)
    async with open_store() as (_, store):
        return await _run(McpAdmin(home, Console(), pins=await open_pins(home, store)), arguments)


async def _run(admin: McpAdmin, arguments: argparse.Namespace) -> int:
    match arguments.verb:
        case "list":
            return admin.list_servers(as_json=arguments.json)
        case "diff":
            return await admin.diff(arguments.server)
        case "trust":
            return await admin.trust(arguments.server, arguments.tools, is_confirmed=arguments.yes)
        case "add":
            return await admin.add(_with_options(arguments))
        case "remove":
            return await admin.remove(arguments.server)
        case "annotate" if arguments.role:
            return admin.assign_roles(arguments.server, arguments.role)
        case "annotate":
            return await admin.annotate(arguments.server, model=arguments.model, is_confirmed=arguments.yes)
        case _:
            return await admin.doctor(arguments.server)
