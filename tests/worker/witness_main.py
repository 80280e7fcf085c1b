"""A worker with real sessions whose one tool leaves a line with an outside witness: arguments are an address and a folder.

It prints its process id and works until it is stopped with SIGTERM, or killed.
"""

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

from holdfast.app import Runtime
from holdfast.core import Call, JsonObject, Performed, SessionId, SystemClock, Tool
from holdfast.models import OnPiece, Prompt, Reply, ScriptedModel, ScriptedReply, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.store import Home, WorkStore
from holdfast.store.postgres.store import PostgresStore
from holdfast.worker import Worker, open_dispatch

TURNS = 3
PRESENCE_SECONDS = 2.0
HEARTBEAT_SECONDS = 3.0
POLICY = FixedPolicy(default="allow", verdicts={"mail.ask": "escalate"})
_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"to": {"type": "string"}},
    "required": ["to"],
}
SEND = Tool(name="mail.send", parameters=_PARAMETERS, roles={})
ASK = Tool(name="mail.ask", parameters=_PARAMETERS, roles={})


class SlowModel(ScriptedModel):
    """Takes a moment to answer, so that workers die while it does."""

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        await asyncio.sleep(random.uniform(0, 0.02))
        return await super().ask(prompt, on_piece)


def replies() -> list[ScriptedReply]:
    """Two calls and an answer a turn."""
    found: list[ScriptedReply] = []
    for turn in range(1, TURNS + 1):
        found += [use("mail__send", {"to": f"{turn}-{part}"}) for part in ("a", "b")]
        found.append(f"done {turn}")
    return found


def asking() -> list[ScriptedReply]:
    """One call that a person approves."""
    return [use("mail__ask", {"to": "boss"}), "done"]


async def start_runtime(url: str, folder: Path) -> tuple[Runtime, WorkStore]:
    """The runtime of a process that shares its store with others."""
    store = await PostgresStore.start(
        url, home=Home(folder / "home"), clock=SystemClock(), presence_seconds=PRESENCE_SECONDS
    )
    settings = Settings(acts_with="tools", restore_points="never")
    return await Runtime.start(home=folder / "home", settings=settings, store=store, servers=()), store


class Mail:
    """Tools that leave a line with the witness, and take a moment before and after it."""

    def __init__(self, folder: Path, session: str) -> None:
        self._folder = folder
        self._session = session

    def tools(self) -> tuple[Tool, ...]:
        return (SEND, ASK)

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        await asyncio.sleep(random.uniform(0, 0.01))
        opened = os.open(self._folder / "witness", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(opened, f"{self._session} {call.arguments['to']}\n".encode())
        os.close(opened)
        await asyncio.sleep(random.uniform(0, 0.01))
        return Performed(result="sent")


def options(folder: Path, session: str) -> tuple[ScriptedModel, Mail]:
    """The model and the tools of a session."""
    return SlowModel(asking() if session.startswith("ask") else replies()), Mail(folder, session)


async def main(url: str, folder: Path) -> None:
    runtime, store = await start_runtime(url, folder)

    async def resume(session: SessionId) -> Session:
        model, tools = options(folder, session)
        return await runtime.resume(session, model=model, policy=POLICY, toolsets=[tools])

    dispatch = open_dispatch(url, heartbeat_seconds=HEARTBEAT_SECONDS)
    assert runtime.posted_requests is not None
    worker = Worker(store=store, dispatch=dispatch, resume=resume, requests=runtime.posted_requests)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    print(os.getpid(), flush=True)
    await worker.run(places=4)
    await runtime.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
