"""Serve your MCP servers to another agent, every call behind the gate.

  holdfast proxy                        over stdio, as an MCP client's configuration starts it
  holdfast proxy --http 0               over HTTP on this machine, with a token
  holdfast install claude               writes the configuration that starts it

The servers are those of mcp-servers.json in the home of Holdfast. What happened is in a session like any other:
holdfast audit NAME.
"""

import argparse
import asyncio
import os
from pathlib import Path

from holdfast.app import Runtime
from holdfast.cli import exits
from holdfast.cli.console import Console
from holdfast.core import EXTERNAL


def configure(parser: argparse.ArgumentParser) -> None:
    """What is served, to whom, and under which policy."""
    parser.add_argument("--servers", metavar="FILE", help="default: mcp-servers.json in the home of Holdfast")
    parser.add_argument("-w", "--workspace", metavar="DIR", default=".", help="where servers work")
    parser.add_argument("-p", "--policy", metavar="NAME|FILE")
    parser.add_argument("-n", "--name", help="a name for the session")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on loopback; 0 picks a port")
    parser.add_argument("--token-env", metavar="VARIABLE", help="take the token of --http from here")
    parser.add_argument(
        "--permission-prompt", action="store_true", help="also answer for Claude Code's built-in tools"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Open the session, serve until the client leaves, close everything."""
    raise NotImplementedError
