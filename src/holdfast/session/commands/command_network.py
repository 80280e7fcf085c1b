"""The network of a session's programs: one proxy a sandbox, whose hosts the gate judges."""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Protocol

from holdfast.commands import (
    CommandProxy,
    CommandSandbox,
    HostDecision,
    HostVerdict,
    JudgedHost,
    proxy_environment,
)
from holdfast.core import Call


class JudgeHostFor(Protocol):
    """Judges a host on behalf of a command. The gate implements it."""

    async def __call__(self, call: Call, host: str, port: int) -> HostVerdict:
        """May wait for a person."""
        ...


class SessionNetwork:
    """Serves the proxy of the open sandbox. Connections are judged on behalf of the command that ran last."""

    def __init__(self, judge: JudgeHostFor) -> None:
        self._judge = judge
        self._sandbox: CommandSandbox | None = None
        self._environment: Mapping[str, str] = {}
        self._serving: asyncio.Task[None] | None = None
        self._listener: socket.socket | None = None
        self._call: Call | None = None
        self._log = _Hosts()

    async def environment(self, sandbox: CommandSandbox) -> Mapping[str, str]:
        """The variables by which programs find the proxy, which is started if it is not."""
        if self._sandbox is not sandbox:
            await self.close()
            listener, port = await sandbox.listen()
            self._listener = listener
            proxy = CommandProxy(listener, judge=self._judge_host, on_decision=self._note)
            self._serving = asyncio.create_task(proxy.serve())
            self._sandbox, self._environment = sandbox, proxy_environment(port)
        return self._environment

    def used_by(self, call: Call, hosts: Sequence[str]) -> "_Hosts":
        """Judge connections on behalf of this call from now on."""
        self._call, self._log = call, _Hosts()
        return self._log

    async def close(self) -> None:
        """Stop the proxy. Idempotent."""
        serving, self._serving, self._sandbox = self._serving, None, None
        if serving is not None:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _judge_host(self, host: str, port: int) -> HostVerdict:
        if self._call is None:
            return HostVerdict(is_allowed=False, reason="no command runs")
        return await self._judge(self._call, host, port)

    def _note(self, decision: HostDecision) -> None:
        self._log.add(decision)


class _Hosts:
    """The hosts that the programs of one call asked for."""

    def __init__(self) -> None:
        self._found: dict[str, JudgedHost] = {}

    def add(self, decision: HostDecision) -> None:
        """Note a decision; of several about one host, the last."""
        verdict = "allowed" if decision.is_allowed else f"refused: {decision.reason}"
        self._found[decision.host] = JudgedHost(host=decision.host, verdict=verdict)

    def judged(self) -> tuple[JudgedHost, ...]:
        """Every host that was judged for the call."""
        return tuple(self._found.values())
