"""Let the model read an output that its policy keeps from it, or list such outputs.

holdfast reveal shop                    list what the model knows by name only
holdfast reveal shop out_3_1

What the model writes from then on has the level of the words, so it may need approval. Rewind to take it back.
"""

import argparse
import re

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.core import SessionId
from holdfast.core.errors import SessionHeld, SessionNotReady
from holdfast.gate import RevealOutput
from holdfast.services import request_of_holder

PROGRESS = "reading the journal"
_OUTPUT = re.compile(r"(?:out|call)_\d+_\d+")


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("session", nargs="?", help="id, prefix or name (default: the newest)")
    parser.add_argument("output", nargs="?", metavar="OUTPUT", help="its name, such as out_3_1")
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(arguments: argparse.Namespace) -> int:
    """List the hidden outputs of a session, or reveal one."""
    console = Console()
    reference, output = arguments.session, arguments.output
    if output is None and reference is not None and _OUTPUT.fullmatch(reference):
        reference, output = None, reference
    async with open_store() as (_, store):
        name = await resolve_session(store, reference)
    runtime = await Runtime.start(servers=())
    try:
        return await _reveal(runtime, name, output, console, is_json=arguments.json)
    finally:
        await runtime.close()


async def _reveal(
    runtime: Runtime, name: SessionId, output: str | None, console: Console, *, is_json: bool
) -> int:
    try:
        session = await runtime.resume(name, needs_model=False)
    except SessionHeld:
        if output is None:
            raise
        applied = await request_of_holder(runtime.home, runtime.store, name, RevealOutput(output=output))
        if applied.error:
            raise SessionNotReady(applied.error) from None
        console.say(f"the process that holds the session showed {output} to the model")
        return exit_codes.OK
    if output is None:
        hidden = session.hidden_outputs()
        if is_json:
            console.json(hidden)
            return exit_codes.OK
        for each, level in hidden.items():
            console.print(f"{each}  words of a {level}")
        if not hidden:
            console.say("nothing is kept from the model")
        return exit_codes.OK
    revealed = await session.reveal(output, transport="command")
    if is_json:
        console.json(revealed)
    else:
        console.say(f"the model may read {revealed.output}, which has words of a {revealed.level}")
    return exit_codes.OK
