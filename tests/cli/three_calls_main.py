"""A chat in which three calls wait at once: a program that tests start at a terminal.

Our own guests wait for one call at a time. External agents may have several open calls, and so has this model.
"""

import asyncio
import sys
from pathlib import Path

from holdfast.app import Runtime
from holdfast.cli.chat.chat import chat_at_terminal
from holdfast.core import Call, CallId
from holdfast.models import OnPiece, Prompt, Reply, ScriptedModel
from holdfast.session import Session


class Eager(ScriptedModel):
    """Requests three deletions before its first reply."""

    session: Session

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        for number, name in enumerate(("a.txt", "b.txt", "c.txt"), start=1):
            call = Call(id=CallId(f"1.{number}"), operation="world.delete", arguments={"path": name})
            await self.session._gate.submit(call)
        return await super().ask(prompt, on_piece)


async def main(home: Path) -> int:
    """Chat until the user leaves."""
    (home / "work").mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (home / "work" / name).write_text("precious\n")
    runtime = await Runtime.start(home=home / "holdfast")
    try:
        model = Eager(["I asked for three."])
        model.session = await runtime.create(
            model=model, workspace=home / "work", policy=str(home / "asking.yaml")
        )
        return await chat_at_terminal(runtime, model.session)
    finally:
        await runtime.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path.cwd())))
