"""Add, review and annotate MCP servers and their tools.

holdfast mcp add git -- uvx mcp-server-git      add a server and accept its tools
holdfast mcp list                               list the servers and their tools
holdfast mcp diff git                           show tools that changed since you accepted them
holdfast mcp trust git                          accept the tools as they are now
holdfast mcp annotate git                       assign roles to the arguments of its tools
holdfast mcp doctor                             start every server and report problems
holdfast mcp remove git
"""

import argparse

from holdfast.cli.mcp_admin import McpAdmin
from holdfast.cli.terminal.console import Console
from holdfast.store import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the subcommands."""
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="list the servers and their tools")
    listing.add_argument("--json", action="store_true", help="print a JSON array")
    for verb, what in (
        ("diff", "show tools that changed since you accepted them"),
        ("trust", "accept changed and added tools"),
        ("remove", "remove a server"),
        ("annotate", "assign roles to the arguments of its tools"),
    ):
        verbs.add_parser(verb, help=what).add_argument("server", help="name of the server")
    verbs.choices["trust"].add_argument("tools", nargs="*", help="only these tools")
    verbs.choices["trust"].add_argument("--yes", action="store_true", help="accept without asking")
    verbs.choices["annotate"].add_argument(
        "-m",
        "--model",
        metavar="PROVIDER:NAME",
        help="also ask this model (default: the configured one), or none",
    )
    verbs.choices["annotate"].add_argument(
        "--yes", action="store_true", help="accept the suggestion without asking"
    )
    adding = verbs.add_parser("add", help="add a server")
    adding.add_argument("server", help="name for the server")
    _configure_entry(adding)
    adding.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND [ARGUMENT...]",
        help="the command that starts it",
    )
    verbs.add_parser("doctor", help="start every server and report problems").add_argument(
        "server", nargs="?", help="only this server"
    )


def _configure_entry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", help="URL of a streamable HTTP server")
    parser.add_argument(
        "--variable",
        action="append",
        default=[],
        metavar="NAME",
        help="pass this environment variable to the server",
    )
    parser.add_argument(
        "--sandbox", action="store_true", help="confine it: writes only in the workspace, no network"
    )


def _split_options(arguments: argparse.Namespace) -> argparse.Namespace:
    """The arguments of `add`, with the options separated that argparse took for part of the command."""
    words: list[str] = arguments.command
    if words[:1] and words[0].startswith("-"):
        end = words.index("--") if "--" in words else len(words)
        parser = argparse.ArgumentParser(prog="holdfast mcp add NAME")
        _configure_entry(parser)
        arguments = parser.parse_args(words[:end], arguments)
        arguments.command = words[end + 1 :]
    return arguments


async def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
    home = Home.default()
    home.prepare()
    admin = McpAdmin(home, Console())
    match arguments.verb:
        case "list":
            return admin.list_servers(as_json=arguments.json)
        case "diff":
            return await admin.diff(arguments.server)
        case "trust":
            return await admin.trust(arguments.server, arguments.tools, is_confirmed=arguments.yes)
        case "add":
            return await admin.add(_split_options(arguments))
        case "remove":
            return admin.remove(arguments.server)
        case "annotate":
            return await admin.annotate(arguments.server, model=arguments.model, is_confirmed=arguments.yes)
        case _:
            return await admin.check_servers(arguments.server)
