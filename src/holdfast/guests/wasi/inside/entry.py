"""The door of the component: one request in, one response out, everything kept in between."""

import base64
import io
import json
import os
import random
import sys
import time
from typing import Any

import wit_world  # type: ignore[import-not-found]  # made from sandbox.wit while the component is built

from . import runner, state, stdlib, tools
from .runner import Output

stdlib.import_everything()
stdlib.install_event_loop()

_FOLDER = "/workspace"
_real_sleep = time.sleep


class _Session:
    """What lasts from one request to the next."""

    def __init__(self) -> None:
        self.number = 0
        self.tools: dict[str, tools.Group | tools.Verb] = {}
        self.lost: dict[str, str] = {}
        self.namespace: dict[str, Any] = {}
        self.clear()

    def clear(self) -> None:
        self.namespace.clear()
        self.namespace.update({"__name__": "__main__", "__doc__": None, "__builtins__": __builtins__})

    def variables(self) -> dict[str, Any]:
        """The namespace itself, the tools taken out: they are handed in anew with each run."""
        for name, tool in self.tools.items():
            if self.namespace.get(name) is tool:
                del self.namespace[name]
        self.tools = {}
        return self.namespace


_session = _Session()


class WitWorld(wit_world.WitWorld):  # type: ignore[misc]
    """What the worker calls."""

    def handle(self, request: str) -> str:
        told = json.loads(request)
        match told["do"]:
            case "run":
                return json.dumps(_run(told))
            case "save":
                content, lost = state.save(_session.variables(), most_bytes=told["most_bytes"])
                return json.dumps({"state": base64.b64encode(content).decode(), "lost": lost})
            case _:
                state.load(base64.b64decode(told["state"]), _session.variables())
                _session.lost = told["lost"]
                return json.dumps({})


def _run(told: dict[str, Any]) -> dict[str, Any]:
    if told["is_fresh"]:
        _session.clear()
    namespace = _session.variables()
    _session.tools = tools.named(told["tools"], _call)
    # A variable of the code may hide a tool of the same name: what was written last is what is meant.
    namespace.update({name: tool for name, tool in _session.tools.items() if name not in namespace})
    _session.number += 1
    output = Output(wit_world.show, told["output_bytes"])
    sys.stdout = sys.stderr = output
    sys.stdin = io.StringIO()
    # From the host's seeded source: the state baked into the component would be the same in all sessions. Sixteen bytes,
    # because `seed()` alone draws 2,500 and each byte costs a microsecond on its way in.
    random.seed(os.urandom(16))
    os.chdir(_FOLDER)
    if _FOLDER not in sys.path:
        sys.path.append(_FOLDER)
    ended = runner.run(
        told["code"],
        namespace,
        number=_session.number,
        value_bytes=told["output_bytes"],
        lost=_session.lost,
    )
    output.flush()
    return {"status": ended.status, "value": ended.value, "error": ended.error}


def _call(request: str) -> str:
    if isinstance(sys.stdout, Output):
        sys.stdout.flush()
    answer: str = wit_world.call_host(request)
    return answer


def _sleep(seconds: float) -> None:
    _real_sleep(seconds)
    wit_world.slept(int(seconds * 1e9))


time.sleep = _sleep  # type: ignore[assignment]  # numbers that only know `__index__` are floats here
sys.dont_write_bytecode = True
