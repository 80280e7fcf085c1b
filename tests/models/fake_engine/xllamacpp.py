"""A fake engine for the child process. The model file is its script.

The file is a JSON list; the nth request of a conversation gets the nth entry. An entry is the text to stream, or
`{"error": ...}`, `{"die": true}`, `{"forever": true}`, `{"length": "text"}`.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class CommonParams:
    def __init__(self) -> None:
        self.model = SimpleNamespace(path="")
        self.cpuparams = SimpleNamespace(n_threads=0)
        self.n_ctx = 0


class Server:
    def __init__(self, params: Any) -> None:
        self._path = Path(params.model.path)
        self._n_ctx = params.n_ctx
        self._script = json.loads(self._path.read_text())
        print("output of the engine on stdout", flush=True)

    def handle_chat_completions(self, request: Any, callback: Callable[[Any], bool]) -> Any:
        self._path.with_suffix(".request").write_text(
            json.dumps(
                {"request": request, "environ": dict(os.environ), "pid": os.getpid(), "n_ctx": self._n_ctx}
            )
        )
        position = sum(message["role"] == "assistant" for message in request["messages"])
        entry = self._script[position]
        if isinstance(entry, str):
            entry = {"text": entry}
        if "error" in entry:
            return entry
        if "die" in entry:
            os._exit(9)
        if "forever" in entry:
            while not callback(piece("on and on ")):
                time.sleep(0.001)
            return None
        text = entry.get("text", entry.get("length"))
        for start in range(0, len(text), 3):
            callback(piece(text[start : start + 3]))
        callback({"choices": [{"delta": {}, "finish_reason": "length" if "length" in entry else "stop"}]})
        counted = {
            "prompt_tokens": 40,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 30},
        }
        callback({"choices": [], "usage": counted})
        return None


def piece(text: str) -> Any:
    return {"choices": [{"delta": {"content": text}, "finish_reason": None}]}
