"""Kill a real process after each event of a turn, and resume the session in another: `python -m tests.agent.crash_main`.

Takes a folder, an engine and a step; prints one JSON line for each crash. The processes are forked from this one, which has
no threads at that point, so that many crashes take seconds.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from holdfast.app import Runtime
from holdfast.core import Escalation, FunctionToolset, JsonObject, Response, Tool, encode
from holdfast.core.events import CallSettled, RecordedEvent, TurnEnded
from holdfast.guests import Engines, Guest, ScriptedEngine, script
from holdfast.models import OnPiece, Prompt, Reply, ScriptedModel, ScriptedReply, use
from holdfast.policy import FixedPolicy

SESSION = "cut-off"
POLICY = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.delete": "escalate"})
MAIL = Tool(
    name="mail.send",
    parameters={"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
    roles={},
)
STEPS: tuple[tuple[JsonObject, ...], ...] = (
    (
        {"call": "world.read", "arguments": {"path": "a.txt"}, "as": "text"},
        {"call": "mail.send", "arguments": {"to": "one"}},
        {"print": {"$": "text"}},
    ),
    (
        {"call": "mail.send", "arguments": {"to": "two"}},
        {"call": "world.write", "arguments": {"path": "a.txt", "content": "new"}},
        {"call": "world.delete", "arguments": {"path": "b.txt"}},
        {"call": "mail.send", "arguments": {"to": "three"}},
    ),
)
PYTHON = (
    "text = open('a.txt').read()\nmail.send(to='one')\nprint(text)",
    "mail.send(to='two')\nopen('a.txt', 'w').write('new')\nworld.delete(path='b.txt')\nmail.send(to='three')",
)


class Scripted(Engines):
    """Every session gets a scripted guest."""

    def guest(self, *_: Any, **__: Any) -> Guest:
        return ScriptedEngine().guest()


class Counted(ScriptedModel):
    """Writes down each time it is asked, where the death of a process cannot reach it."""

    def __init__(self, replies: list[ScriptedReply], path: Path) -> None:
        super().__init__(replies)
        self._path = path

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        note(self._path, str(len(prompt.messages)))
        return await super().ask(prompt, on_piece)


def note(path: Path, line: str) -> None:
    """One line more, by one write."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


async def approve(escalation: Escalation) -> Response:
    return Response(verdict="approve")


async def live(folder: Path, engine: str, *, dies_after: int | None) -> None:
    """One life of a process: begin the session or take it up, until it dies or the turn is over."""
    sources = PYTHON if engine == "python" else [script(*steps) for steps in STEPS]
    replies: list[ScriptedReply] = [use("execute_code", {"code": source}) for source in sources]
    model = Counted([*replies, "All done."], folder / "asked")
    mail = FunctionToolset({MAIL.name: (MAIL, lambda sent: note(folder / "sent", str(sent["to"])))})
    home = folder / "home"
    engines = None if engine == "python" else Scripted(key=b"k" * 32, cache=folder)
    runtime = await Runtime.start(home=home, engines=engines)
    if (home / "sessions" / SESSION).exists():
        session = await runtime.resume(SESSION, model=model, policy=POLICY, toolsets=[mail], approver=approve)
        await session.advance()
    else:
        project = folder / "project"
        project.mkdir()
        (project / "a.txt").write_text("old")
        (project / "b.txt").write_text("to go")
        session = await runtime.create(
            session=SESSION, model=model, policy=POLICY, toolsets=[mail], approver=approve, workspace=project
        )

        def die(entry: RecordedEvent) -> None:
            if entry.seq == dies_after:
                os.kill(os.getpid(), signal.SIGKILL)

        session.follow(die)
        await session.send("go")
    recorded = await runtime.store.read(session.id)
    events = [entry.event for entry in recorded]
    ends = [event.outcome for event in events if isinstance(event, TurnEnded)]
    report = {
        "kinds": [type(event).__name__ for event in events],
        "outcomes": [json.loads(encode(each)) for each in ends],
        "unknown": sum(isinstance(event, CallSettled) and event.status == "unknown" for event in events),
        "sent": lines(folder / "sent"),
        "asked": lines(folder / "asked"),
        "files": sorted(path.name for path in (folder / "project").iterdir()),
        "staged": [proposal.path for proposal in session.proposals()],
    }
    (folder / "report.json").write_text(json.dumps(report))
    await runtime.close()


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def in_a_process(folder: Path, engine: str, dies_after: int | None) -> int:
    """Fork, live, and say how it ended."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            asyncio.run(live(folder, engine, dies_after=dies_after))
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Cut the turn after each n-th event."""
    root, engine, step = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    cut = 1
    while True:
        folder = root / f"{engine}-{cut}"
        folder.mkdir()
        died = in_a_process(folder, engine, cut)
        again = in_a_process(folder, engine, None) if died == -signal.SIGKILL else died
        report = json.loads((folder / "report.json").read_text()) if again == 0 else {}
        print(json.dumps({"cut": cut, "died": died, "again": again, **report}), flush=True)
        if died != -signal.SIGKILL:
            return
        cut += step


if __name__ == "__main__":
    main()
