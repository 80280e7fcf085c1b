"""A home of Holdfast with a folder to work in, and `holdfast` run there as people and other programs run it."""

import io
import itertools
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import mcp_types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.mcp.bench import SERVERS

from holdfast.cli.main import main

FRIENDLY = [sys.executable, str(SERVERS / "friendly.py")]
POLICY = """\
policy: lab
rules:
  - name: ask
    escalate: friendly.echo
    because: it echoes
  - name: rest
    allow: "*"
tools:
  friendly.echo: {text: none}
"""


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


class Place:
    """A home of Holdfast and a folder to work in."""

    def __init__(self, root: Path) -> None:
        self.home, self.folder = root / "home", root / "work"
        self.home.mkdir(mode=0o700)
        self.folder.mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOLDFAST_HOME": str(self.home), "HOME": str(root)}

    def configure(self, **servers: list[str]) -> None:
        """Write mcp-servers.json and tool annotations for the friendly server."""
        entries = {name: {"command": command[0], "args": command[1:]} for name, command in servers.items()}
        (self.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": entries}))
        roles = {"toolName": "echo", "args": {"text": ["none"]}}
        count = {"toolName": "wait_forever", "args": {"marker": ["none"]}}
        annotations = {"servers": {"friendly": {"tools": [roles, count]}}}
        (self.home / "tool-annotations.json").write_text(json.dumps(annotations))
        (self.home / "lab.yaml").write_text(POLICY)

    def run(self, *words: str, stdin: str = "") -> Done:
        """A command, run to its end in this process."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name, value in self.environment.items():
                patch.setenv(name, value)
            patch.chdir(self.folder)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            code = main(list(words))
        return Done(code, out.getvalue(), err.getvalue())

    def spawn(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """A command, run to its end in a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            check=False,
            timeout=50,
        )

    @asynccontextmanager
    async def proxied(self, *words: str, era: str = "auto", **callbacks: Any) -> AsyncIterator[Client]:
        """The official client over stdio, with `holdfast proxy` at the other end."""
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "holdfast", "proxy", "-p", str(self.home / "lab.yaml"), *words],
            env=self.environment,
            cwd=self.folder,
        )
        info = mcp_types.Implementation(name="desk", version="1")
        async with Client(stdio_client(server), mode=era, client_info=info, **callbacks) as client:
            yield client


class Raw:
    """`holdfast proxy` as a process, spoken to without any library."""

    def __init__(self, place: Place) -> None:
        self._numbers = itertools.count(2)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "proxy", "-p", str(place.home / "lab.yaml")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place.folder,
            env=place.environment,
        )
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        self.say("initialize", hello, id=1)
        assert "result" in self.hear()
        self.say("notifications/initialized")

    def say(self, method: str, params: dict[str, Any] | None = None, **fields: Any) -> None:
        """One message to it."""
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}} | fields
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        """The next message from it."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, tool: str, **arguments: object) -> int:
        """Call a tool and do not wait; the number of the call."""
        number = next(self._numbers)
        self.say("tools/call", {"name": tool, "arguments": arguments}, id=number)
        return number

    def kill(self) -> None:
        """End it without a chance to say anything."""
        self.process.kill()
        self.process.communicate(timeout=10)

    def hang_up(self) -> tuple[int, str]:
        """Close its input; its exit code, and what it said to the person."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None
        _, errors = self.process.communicate(timeout=10)
        return self.process.returncode, errors.decode()
