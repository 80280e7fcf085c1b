"""Runs a command in a session and kills this process with SIGKILL at a point: arguments are the folder, the verdict and the point."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from holdfast.app import Runtime
from holdfast.core.events import EffectsJudged, RecordedEvent
from holdfast.models import ScriptedModel, use
from holdfast.session import Settings

SCRIPT = 'echo ran >> log; for i in $(seq 100 139); do echo "whole $i" > new$i; done'


async def main(folder: Path, verdict: str, point: str) -> None:
    runtime = await Runtime.start(home=folder / "home", settings=Settings(acts_with="tools"), servers=())
    script = f"{SCRIPT}; echo changed; sleep 60" if point == "running" else SCRIPT
    session = await runtime.create(
        model=ScriptedModel([use("shell__run", {"script": script})]),
        workspace=folder / "project",
        policy=str(folder / f"{verdict}.yaml"),
    )
    print(session.id, flush=True)

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def follow(recorded: RecordedEvent) -> None:
        if point == "judged" and isinstance(recorded.event, EffectsJudged):
            kill()

    def on_output(text: str) -> None:
        if point == "running":
            kill()

    async def watch() -> None:
        while True:
            if (folder / "project" / "new100").exists():
                kill()
            await asyncio.sleep(0)

    session.follow(follow)
    session.on_output = on_output
    if point == "applying":
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(watch())
            tasks.create_task(session.send("go"))
    await session.send("go")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
