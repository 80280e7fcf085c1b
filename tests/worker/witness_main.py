"""A worker with real sessions whose one tool leaves a line with an outside witness: arguments are an address and a folder.

It says when it is ready and works until it is stopped with SIGTERM, or killed. `--clock SECONDS` sets its clock wrong, `--without
EVENT` makes it a version that does not know a kind of event, `--model-seconds` and `--call-seconds` slow it down,
`--network FILE` puts it into a network namespace.
"""

import argparse
import asyncio
import ctypes
import os
import random
import signal
from pathlib import Path
from typing import Union

import msgspec

import holdfast.core.events.hash_chain as hash_chain
from holdfast.app import Runtime
from holdfast.core import Call, Clock, JsonObject, Performed, SessionId, SystemClock, Tool
from holdfast.core.events.base import event_types
from holdfast.models import OnPiece, Prompt, Reply, ScriptedModel, ScriptedReply, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.store import Home, WorkStore
from holdfast.store.postgres.store import PostgresStore
from holdfast.worker import Worker, open_dispatch

TURNS = 2
CALLS = ("a", "b", "c")
"""Of each turn."""
PRESENCE_SECONDS = 0.5
HEARTBEAT_SECONDS = 0.75
POLICY = FixedPolicy(default="allow", verdicts={"mail.ask": "escalate"})
_CLONE_NEWNET = 0x40000000
_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"to": {"type": "string"}},
    "required": ["to"],
}
SEND = Tool(name="mail.send", parameters=_PARAMETERS, roles={})
ASK = Tool(name="mail.ask", parameters=_PARAMETERS, roles={})


class SlowModel(ScriptedModel):
    """Takes a moment to answer, so that workers die while it does."""

    seconds = 0.02

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        await asyncio.sleep(random.uniform(0, self.seconds))
        return await super().ask(prompt, on_piece)


def replies() -> list[ScriptedReply]:
    """Some calls and an answer a turn."""
    found: list[ScriptedReply] = []
    for turn in range(1, TURNS + 1):
        found += [use("mail__send", {"to": f"{turn}-{part}"}) for part in CALLS]
        found.append(f"done {turn}")
    return found


def asking() -> list[ScriptedReply]:
    """One call that a person approves."""
    return [use("mail__ask", {"to": "boss"}), "done"]


class WrongClock(SystemClock):
    """A clock that was set wrong."""

    def __init__(self, seconds: float) -> None:
        self._shift_ms = round(seconds * 1000)

    def now_ms(self) -> int:
        return super().now_ms() + self._shift_ms


async def start_runtime(url: str, folder: Path, clock: Clock | None = None) -> tuple[Runtime, WorkStore]:
    """The runtime of a process that shares its store with others."""
    clock = clock or SystemClock()
    store = await PostgresStore.start(
        url, home=Home(folder / "home"), clock=clock, presence_seconds=PRESENCE_SECONDS
    )
    settings = Settings(acts_with="tools", restore_points="never")
    runtime = await Runtime.start(
        home=folder / "home", settings=settings, store=store, servers=(), clock=clock
    )
    return runtime, store


def forget(event: str) -> None:
    """Become a version that does not know a kind of event."""
    known = tuple(kind for kind in event_types() if kind.__name__ != event)
    hash_chain._DECODER = msgspec.json.Decoder(Union[known])  # noqa: UP007
    hash_chain._TAGS = frozenset(kind.__struct_config__.tag for kind in known)


def enter_network(namespace: Path) -> None:
    """Change the network namespace of this process."""
    with namespace.open() as opened:
        if ctypes.CDLL(None, use_errno=True).setns(opened.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


class Mail:
    """Tools that leave a line with the witness, and take a moment before and after it."""

    seconds = 0.02

    def __init__(self, folder: Path, session: str) -> None:
        self._folder = folder
        self._session = session

    def tools(self) -> tuple[Tool, ...]:
        return (SEND, ASK)

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        await asyncio.sleep(random.uniform(0, self.seconds / 2))
        opened = os.open(self._folder / "witness", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(opened, f"{self._session} {call.arguments['to']}\n".encode())
        os.close(opened)
        await asyncio.sleep(random.uniform(0, self.seconds / 2))
        return Performed(result="sent")


def options(folder: Path, session: str) -> tuple[ScriptedModel, Mail]:
    """The model and the tools of a session."""
    return SlowModel(asking() if session.startswith("ask") else replies()), Mail(folder, session)


async def main(url: str, folder: Path, clock: Clock, places: int) -> None:
    runtime, store = await start_runtime(url, folder, clock)

    async def resume(session: SessionId) -> Session:
        model, tools = options(folder, session)
        return await runtime.resume(session, model=model, policy=POLICY, toolsets=[tools])

    dispatch = open_dispatch(url, engine=store.engine, heartbeat_seconds=HEARTBEAT_SECONDS)
    assert runtime.posted_requests is not None
    worker = Worker(store=store, dispatch=dispatch, resume=resume, requests=runtime.posted_requests)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    print("ready", flush=True)
    await worker.run(places=places)
    await runtime.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clock", type=float, default=0.0)
    parser.add_argument("--without", default="")
    parser.add_argument("--places", type=int, default=4)
    parser.add_argument("--model-seconds", type=float, default=SlowModel.seconds)
    parser.add_argument("--call-seconds", type=float, default=Mail.seconds)
    parser.add_argument("--network", type=Path)
    arguments = parser.parse_args()
    if arguments.network:
        enter_network(arguments.network)
    if arguments.without:
        forget(arguments.without)
    SlowModel.seconds = arguments.model_seconds
    Mail.seconds = arguments.call_seconds
    asyncio.run(main(arguments.url, arguments.folder, WrongClock(arguments.clock), arguments.places))
