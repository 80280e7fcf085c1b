"""The program in the child process: one model in memory, requests on its input, pieces of replies on its output.

It stands alone: it is run by path, imports the engine and nothing of ours. Each line is one JSON object.

    in   {"id": 1, "ask": {...a chat completion...}}    {"cancel": 1}
    out  {"ready": {"context_tokens": 8192}}  {"failed": "why"}  {"id": 1, "chunk": {...}}  {"id": 1, "done": true}

When its input ends, its parent is gone, and so is it.
"""

import contextlib
import importlib
import json
import os
import queue
import secrets
import sys
import threading
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]  # Any: JSON as the engine takes and gives it
Say = Callable[[Message], None]


def main() -> None:
    """Open the engine, say whether that worked, then answer one request after another until stdin ends."""
    path, context_tokens, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    # The engine may print; what it prints must not get between our lines.
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(message: Message) -> None:
        lines.write(json.dumps(message) + "\n")
        lines.flush()

    try:
        server = open_engine(path, context_tokens, threads)
    except Exception as error:  # whatever the engine raises, the parent has to hear of it
        say({"failed": f"{type(error).__name__}: {error}"})
        return
    say({"ready": {"context_tokens": context_tokens}})
    asked: queue.SimpleQueue[Message] = queue.SimpleQueue()
    cancelled: set[int] = set()
    threading.Thread(target=listen, args=(asked, cancelled), daemon=True).start()
    while True:
        message = asked.get()
        answer(server, message["id"], message["ask"], cancelled, say)


def open_engine(path: str, context_tokens: int, threads: int) -> Any:  # Any: the engine has no types
    """The engine with its weights loaded."""
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.warmup = False
    params.verbosity = -1
    if threads:
        params.cpuparams.n_threads = threads
    # The engine opens a port of its own that we do not use: nobody knows its key.
    params.api_keys = [secrets.token_hex(32)]
    params.port = 0
    params.ui = False
    return xllamacpp.Server(params)


def listen(asked: queue.SimpleQueue[Message], cancelled: set[int]) -> None:
    """Take requests from stdin; one that is cancelled is noted at once. Its end is ours."""
    for line in sys.stdin:
        with contextlib.suppress(ValueError):
            message = json.loads(line)
            if "cancel" in message:
                cancelled.add(message["cancel"])
            else:
                asked.put(message)
    os._exit(0)


def answer(server: Any, number: int, request: Message, cancelled: set[int], say: Say) -> None:
    """Ask the engine, and pass on each piece as it comes."""

    def pass_on(chunk: Message) -> bool:
        """True stops the engine."""
        say({"id": number, "chunk": chunk})
        return number in cancelled

    if number not in cancelled:
        try:
            # Errors come back as a value, in place of chunks.
            result = server.handle_chat_completions(request, pass_on)
            if result is not None:
                say({"id": number, "chunk": result})
        except Exception as error:  # one bad request must not end the model
            say(
                {
                    "id": number,
                    "chunk": {"error": {"code": 500, "message": f"{type(error).__name__}: {error}"}},
                }
            )
    cancelled.discard(number)
    say({"id": number, "done": True})


if __name__ == "__main__":
    main()
