"""The program of the child process: one model in memory, requests on stdin, pieces of replies on stdout.

It is run by path and imports the engine, but nothing of Holdfast. Each line is one JSON object.

    in   {"id": 1, "ask": {...a chat completion...}}    {"cancel": 1}
    out  {"ready": {"context_tokens": 8192}}  {"failed": "why"}  {"id": 1, "chunk": {...}}  {"id": 1, "done": true}

When stdin ends, the parent has gone, and the child exits.
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

Message = dict[str, Any]  # Any: JSON of the engine
Send = Callable[[Message], None]


def main() -> None:
    """Load the engine, report whether that worked, then answer requests one by one until stdin ends."""
    path, context_tokens, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    # The engine may print to stdout, which must not mix with our lines.
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(message: Message) -> None:
        lines.write(json.dumps(message) + "\n")
        lines.flush()

    try:
        server = open_engine(path, context_tokens, threads)
    except Exception as error:  # the parent must hear of every failure of the engine
        send({"failed": f"{type(error).__name__}: {error}"})
        return
    send({"ready": {"context_tokens": context_tokens}})
    requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
    cancelled: set[int] = set()
    threading.Thread(target=listen, args=(requests, cancelled), daemon=True).start()
    while True:
        message = requests.get()
        answer(server, message["id"], message["ask"], cancelled, send)


def open_engine(path: str, context_tokens: int, threads: int) -> Any:  # Any: the engine has no types
    """Load the engine and the model file."""
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.warmup = False
    params.verbosity = -1
    if threads:
        params.cpuparams.n_threads = threads
    # The engine opens its own port, which we do not use. A random key locks it.
    params.api_keys = [secrets.token_hex(32)]
    params.port = 0
    params.ui = False
    return xllamacpp.Server(params)


def listen(requests: queue.SimpleQueue[Message], cancelled: set[int]) -> None:
    """Read requests and cancellations from stdin. Exits the process when stdin ends."""
    for line in sys.stdin:
        with contextlib.suppress(ValueError):
            message = json.loads(line)
            if "cancel" in message:
                cancelled.add(message["cancel"])
            else:
                requests.put(message)
    os._exit(0)


def answer(server: Any, number: int, request: Message, cancelled: set[int], send: Send) -> None:
    """Pass the request to the engine and send each piece as it arrives."""

    def on_chunk(chunk: Message) -> bool:
        """Returning True stops the engine."""
        send({"id": number, "chunk": chunk})
        return number in cancelled

    if number not in cancelled:
        try:
            # The engine returns errors as a value instead of chunks.
            result = server.handle_chat_completions(request, on_chunk)
            if result is not None:
                send({"id": number, "chunk": result})
        except Exception as error:  # a bad request must not end the process
            send(
                {
                    "id": number,
                    "chunk": {"error": {"code": 500, "message": f"{type(error).__name__}: {error}"}},
                }
            )
    cancelled.discard(number)
    send({"id": number, "done": True})


if __name__ == "__main__":
    main()
