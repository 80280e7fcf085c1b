"""The entry point of the component: handles one request at a time and keeps the session in between."""

import base64
import io
import json
import os
import random
import sys
import time
from typing import Any

import wit_world  # type: ignore[import-not-found]  # generated from sandbox.wit when the component is built

from . import append_files, runner, state, stdlib, tools, written_files
from .runner import Output

stdlib.import_everything()
stdlib.install_event_loop()
append_files.install()
written_files.report = wit_world.writing

_FOLDER = "/workspace"
_real_sleep = time.sleep


class _Session:
    """What is kept between requests."""

    def __init__(self) -> None:
        self.number = 0
        self.argument_bytes = 0
        self.tools: dict[str, tools.Group | tools.Verb] = {}
        self.lost: dict[str, str] = {}
        self.namespace: dict[str, Any] = {}
        self.clear()

    def clear(self) -> None:
        self.namespace.clear()
        self.namespace.update({"__name__": "__main__", "__doc__": None, "__builtins__": __builtins__})

    def variables(self) -> dict[str, Any]:
        """The namespace without the tools, which each run passes in again."""
        for name, tool in self.tools.items():
            if self.namespace.get(name) is tool:
                del self.namespace[name]
        self.tools = {}
        return self.namespace


_session = _Session()


class WitWorld(wit_world.WitWorld):  # type: ignore[misc]
    """The functions that the worker calls."""

    def handle(self, request: str) -> str:
        body = json.loads(request)
        match body["do"]:
            case "run":
                return json.dumps(_run(body))
            case "save":
                content, lost = state.save(_session.variables(), max_bytes=body["max_bytes"])
                return json.dumps({"state": base64.b64encode(content).decode(), "lost": lost})
            case _:
                state.load(base64.b64decode(body["state"]), _session.variables())
                _session.lost = body["lost"]
                return json.dumps({})


def _run(body: dict[str, Any]) -> dict[str, Any]:
    if body["is_fresh"]:
        _session.clear()
    namespace = _session.variables()
    _session.argument_bytes = body["argument_bytes"]
    _session.tools = tools.bind(body["tools"], _call)
    # A variable of the code hides a tool of the same name.
    namespace.update({name: tool for name, tool in _session.tools.items() if name not in namespace})
    _session.number += 1
    output = Output(wit_world.show, body["output_bytes"])
    sys.stdout = sys.stderr = output
    sys.stdin = io.StringIO()
    # Seeded from the host, because the state that is built into the component is the same in all sessions. Sixteen bytes,
    # because `seed()` alone draws 2,500, and each byte costs a microsecond to fetch.
    random.seed(os.urandom(16))
    os.chdir(_FOLDER)
    if _FOLDER not in sys.path:
        sys.path.append(_FOLDER)
    result = runner.run(
        body["code"],
        namespace,
        number=_session.number,
        value_bytes=body["output_bytes"],
        lost=_session.lost,
    )
    written_files.finish(result.problem)
    output.flush()
    return {"status": result.status, "value": result.value, "error": result.error}


def _call(request: str) -> str:
    size = len(request) if request.isascii() else len(request.encode())
    if size > _session.argument_bytes:
        limit = _session.argument_bytes >> 20
        raise ValueError(f"the arguments of this call have more than {limit} MB")
    if isinstance(sys.stdout, Output):
        sys.stdout.flush()
    answer: str = wit_world.call_host(request)
    return answer


def _sleep(seconds: float) -> None:
    _real_sleep(seconds)
    wit_world.slept(int(seconds * 1e9))


time.sleep = _sleep  # type: ignore[assignment]  # the original also accepts objects with `__index__`
sys.dont_write_bytecode = True
