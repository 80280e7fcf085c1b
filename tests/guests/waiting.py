"""One process of a session that asks its person: run as a program, it does one step and ends.

python -m tests.guests.waiting HOME SANDBOX begin CODE      start a session whose code waits; prints how that ended
python -m tests.guests.waiting HOME SANDBOX answer WORDS    answer the first question in words; prints how the turn goes on
"""

import asyncio
import json
import sys
from pathlib import Path

from tests.guests.engines import KEY, component_cache

from holdfast import Runtime
from holdfast.core import Ok, Proposed, Response
from holdfast.core.events import RunStarted
from holdfast.guests import Engines

SESSION = "asking"


async def main(home: str, sandbox: str, step: str, words: str) -> None:
    """Do the step and tell of it in one line of JSON."""
    runtime = await Runtime.start(home=Path(home), engines=Engines(key=KEY, cache=component_cache()))
    try:
        session = await runtime.sandbox(SESSION, sandbox=sandbox, policy="project")  # type: ignore[arg-type]
        if step == "begin":
            outcome = await session.execute(words)
        else:
            waits = session.escalations()[0]
            await session.resolve(waits.id, Response(verdict="approve", reason=words), transport="test")
            outcome = await session.advance()  # type: ignore[assignment]
        recorded = await runtime.store.read(session.id)
        told = {
            "outcome": type(outcome).__name__,
            "value": outcome.value if isinstance(outcome, Ok | Proposed) else None,
            "asked": [each.call.arguments["question"] for each in session.escalations()],
            "calls": [entry.operation for entry in session.audit()],
            "starts": sum(isinstance(each.event, RunStarted) for each in recorded),
        }
        print(json.dumps(told))
    finally:
        await runtime.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
