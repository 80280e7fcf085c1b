"""The network of a session's programs: one proxy a sandbox, whose hosts the gate judges."""

import asyncio
import socket
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Protocol

from holdfast.commands import (
    CommandProxy,
    CommandSandbox,
    HostDecision,
    HostVerdict,
    JudgedHost,
    listen_on_host,
    proxy_environment,
    serve_host_port,
    serve_preview,
)
from holdfast.core import Call

MAX_OWN_PROXIES = 16
"""Programs in the background with a proxy of their own, over the life of a sandbox. Further ones share that of the commands."""


class JudgeHostFor(Protocol):
    """Judges a host on behalf of a command. The gate implements it."""

    async def __call__(self, call: Call, host: str, port: int, address: str = "") -> HostVerdict:
        """May wait for a person. With `address`: the host is allowed, and that address is not public."""
        ...


class SessionNetwork:
    """Serves the proxies of the open sandbox: one for the command that runs, and one for each program in the background.

    Which proxy a program uses says on whose behalf its connections are judged and recorded. It is not a wall: all programs of a
    sandbox reach all of its ports.
    """

    def __init__(
        self,
        judge: JudgeHostFor | None,
        *,
        ports: Sequence[int] = (),
        is_closed: Callable[[int], bool] = lambda _: False,
        endpoints: Callable[[], Collection[tuple[str, int]]] = tuple,
    ) -> None:
        """Without `judge` there is no proxy. `ports` of this machine are forwarded unless one is closed when a program connects, as
        the port of our own web server is; `endpoints` finds registries with a port."""
        self._judge = judge
        self._ports = ports
        self._is_closed = is_closed
        self._endpoints = endpoints
        self._sandbox: CommandSandbox | None = None
        self._environment: Mapping[str, str] = {}
        self._serving: list[asyncio.Task[None]] = []
        self._listeners: list[socket.socket] = []
        self._running = _Client()
        self._own_proxies = 0

    async def serve(
        self, sandbox: CommandSandbox, call: Call, *, is_background: bool = False
    ) -> tuple[Mapping[str, str], "_Hosts"]:
        """The variables by which the programs of a call find their proxy, and the hosts that they ask for."""
        await self._use(sandbox)
        if is_background and self._judge is not None and self._own_proxies < MAX_OWN_PROXIES:
            self._own_proxies += 1
            client = _Client(call)
            return await self._serve_proxy(sandbox, client), client.log
        self._running.call, self._running.log = call, _Hosts()
        return self._environment, self._running.log

    async def _use(self, sandbox: CommandSandbox) -> None:
        """Serve this sandbox from now on."""
        if self._sandbox is not sandbox:
            await self.close()
            self._environment = (
                await self._serve_proxy(sandbox, self._running) if self._judge is not None else {}
            )
            for port in self._ports:
                listener, _ = await sandbox.listen(port)
                self._start(listener, serve_host_port(listener, port, is_closed=self._is_closed))
            self._sandbox = sandbox

    async def close(self) -> None:
        """Stop the proxy. Idempotent."""
        serving, self._serving, self._sandbox = self._serving, [], None
        self._own_proxies = 0
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    async def preview(self, sandbox: CommandSandbox, port: int, *, at: int = 0) -> int:
        """Forward a port of this machine's loopback to a port of the sandbox, until it closes. Returns the port here."""
        await self._use(sandbox)  # previews end with the sandbox that they lead to
        listener = listen_on_host(at)
        self._start(listener, serve_preview(sandbox, port, listener))
        return int(listener.getsockname()[1])

    async def _serve_proxy(self, sandbox: CommandSandbox, client: "_Client") -> Mapping[str, str]:
        async def judge(host: str, port: int, address: str = "") -> HostVerdict:
            if client.call is None or self._judge is None:
                return HostVerdict(is_allowed=False, reason="no command runs")
            return await self._judge(client.call, host, port, address)

        listener, port = await sandbox.listen()
        proxy = CommandProxy(
            listener,
            judge=judge,
            on_decision=lambda decision: client.log.add(decision),
            named_endpoints=self._endpoints,
        )
        self._start(listener, proxy.serve())
        return proxy_environment(port)

    def _start(self, listener: socket.socket, serve: Coroutine[None, None, None]) -> None:
        self._listeners.append(listener)
        self._serving.append(asyncio.create_task(serve))


class _Client:
    """On whose behalf a proxy connects."""

    def __init__(self, call: Call | None = None) -> None:
        self.call = call
        self.log = _Hosts()


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
