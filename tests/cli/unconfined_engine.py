"""An engine without confinement: it runs Python in a process with all our rights. For tests only."""

import asyncio
import json
import sys
from collections.abc import Mapping

from holdfast.core import Answer
from holdfast.guests import Capabilities, OnCall, Run, RunRequest

_RUN = """
import ast, json, sys
tree = ast.parse(sys.argv[1])
last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
names = {}
exec(compile(tree, "bare", "exec"), names)
value = eval(compile(ast.Expression(last.value), "bare", "eval"), names) if last else None
print(json.dumps(value))
"""
_CAPABILITIES = Capabilities(
    engine="bare", version="1", language="python", has_snapshot=False, judges_files=False
)


class UnconfinedEngine:
    """Creates unconfined guests."""

    capabilities = _CAPABILITIES

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def guest(self) -> "UnconfinedGuest":
        return UnconfinedGuest(self._environment)

    async def close(self) -> None:
        """Nothing to stop."""


class UnconfinedGuest:
    """Runs code to its end, or until its time limit."""

    capabilities = _CAPABILITIES

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _RUN, request.code, env=self._environment, stdout=pipe, stderr=pipe
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), request.limits.seconds)
        except TimeoutError:
            process.kill()
            await process.communicate()
            return Run(status="limit")
        if process.returncode:
            return Run(status="error", error=err.decode().splitlines()[-1])
        return Run(status="ok", value=json.loads(out))

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        return await self.run(request, on_call)

    async def snapshot(self) -> bytes:
        return b""

    async def restore(self, state: bytes) -> None:
        """It keeps no state."""

    async def close(self) -> None:
        """Nothing to free."""
