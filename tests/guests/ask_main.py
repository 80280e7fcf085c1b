"""One process of a session whose code asks its person: takes one step and ends.

python -m tests.guests.ask_main HOME SANDBOX start CODE      start a session whose code waits
python -m tests.guests.ask_main HOME SANDBOX answer WORDS    answer its first question, and run on

Prints the state of the session as one line of JSON.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.guests.engines import KEY, component_cache

from holdfast import Runtime
from holdfast.core import Ok, Proposed, Response
from holdfast.core.events import RunStarted
from holdfast.guests import Engines

SESSION = "asking"


async def take_step(home: Path, sandbox: str, step: str, words: str) -> dict[str, Any]:
    """Take the step in a new runtime, and describe the session after it."""
    runtime = await Runtime.start(home=home, engines=Engines(key=KEY, cache=component_cache()))
    try:
        session = await runtime.sandbox(SESSION, sandbox=sandbox, policy="project")  # type: ignore[arg-type]
        if step == "start":
            outcome = await session.execute(words)
        else:
            waits = session.escalations()[0]
            await session.resolve(waits.id, Response(verdict="approve", reason=words), transport="test")
            outcome = await session.advance()  # type: ignore[assignment]
        recorded = await runtime.store.read(session.id)
        return {
            "outcome": type(outcome).__name__,
            "value": outcome.value if isinstance(outcome, Ok | Proposed) else None,
            "asked": [each.call.arguments["question"] for each in session.escalations()],
            "calls": [entry.operation for entry in session.audit()],
            "starts": sum(isinstance(each.event, RunStarted) for each in recorded),
        }
    finally:
        await runtime.close()


if __name__ == "__main__":
    folder, chosen, action, text = sys.argv[1:]
    print(json.dumps(asyncio.run(take_step(Path(folder), chosen, action, text))))
