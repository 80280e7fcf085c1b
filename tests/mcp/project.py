"""A project with its own data directory of Holdfast, and `holdfast` run there in this process or in another one."""

import io
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import mcp_types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.mcp.toolset_harness import server_command
from tests.support.fork_server import forked_python

from holdfast.cli.main import main

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


class Completed(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


class Project:
    """A data directory and a folder to work in."""

    def __init__(self, root: Path) -> None:
        self.home, self.folder = root / "home", root / "work"
        self.home.mkdir(mode=0o700)
        self.folder.mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOLDFAST_HOME": str(self.home), "HOME": str(root)}

    def configure(self, **servers: list[str]) -> None:
        """Write mcp-servers.json, the annotations of the friendly server, and a policy."""
        entries = {name: {"command": command[0], "args": command[1:]} for name, command in servers.items()}
        (self.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": entries}))
        echo = {"toolName": "echo", "args": {"text": ["none"]}}
        wait = {"toolName": "wait_forever", "args": {"marker": ["none"]}}
        annotations = {"servers": {"friendly": {"tools": [echo, wait]}}}
        (self.home / "tool-annotations.json").write_text(json.dumps(annotations))
        (self.home / "lab.yaml").write_text(POLICY)

    def configure_friendly(self) -> None:
        """Configure the friendly server alone."""
        self.configure(friendly=server_command("friendly"))

    def run(self, *words: str, stdin: str = "") -> Completed:
        """Run a command in this process."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name, value in self.environment.items():
                patch.setenv(name, value)
            patch.chdir(self.folder)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            code = main(list(words))
        return Completed(code, out.getvalue(), err.getvalue())

    def spawn(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a command in its own process."""
        return subprocess.run(
            forked_python("-m", "holdfast", *words),
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            check=False,
            timeout=120,
        )

    @asynccontextmanager
    async def proxy_client(
        self, *words: str, protocol: str = "auto", is_forked: bool = True, **callbacks: Any
    ) -> AsyncIterator[Client]:
        """The official client, connected over stdio to a `holdfast proxy` that it starts."""
        python = forked_python() if is_forked else [sys.executable]
        command = [*python, "-m", "holdfast", "proxy", "-p", str(self.home / "lab.yaml"), *words]
        server = StdioServerParameters(
            command=command[0], args=command[1:], env=self.environment, cwd=self.folder
        )
        info = mcp_types.Implementation(name="desk", version="1")
        async with Client(stdio_client(server), mode=protocol, client_info=info, **callbacks) as client:
            yield client

    def escalations(self) -> list[Path]:
        """The open escalations of all sessions, as the files that wait for an answer."""
        return list((self.home / "sessions").glob("*/escalations/request-*.json"))


class ProxyProcess:
    """`holdfast proxy` as a process, driven without the MCP library."""

    def __init__(self, project: Project) -> None:
        self._numbers = itertools.count(2)
        self.process = subprocess.Popen(
            forked_python("-m", "holdfast", "proxy", "-p", str(project.home / "lab.yaml")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=project.folder,
            env=project.environment,
        )
        parameters = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        self.send("initialize", parameters, id=1)
        assert "result" in self.receive()
        self.send("notifications/initialized")

    def send(self, method: str, params: dict[str, Any] | None = None, **fields: Any) -> None:
        """Send one message."""
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}} | fields
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        """Read the next message."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, tool: str, **arguments: object) -> int:
        """Call a tool without waiting for the result. Returns the request id."""
        number = next(self._numbers)
        self.send("tools/call", {"name": tool, "arguments": arguments}, id=number)
        return number

    def wait_for(self, is_true: Any) -> None:
        """Wait until something happens in the proxy, which must stay alive."""
        while not is_true():
            assert self.process.poll() is None
            time.sleep(0.005)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        assert self.process.stdout is not None
        self.process.kill()
        self.process.stdout.read()  # before its input is closed, which would let it end normally
        self.process.communicate(timeout=60)

    def hang_up(self) -> tuple[int, str]:
        """Close its standard input. Returns its exit code and standard error."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors.decode()
