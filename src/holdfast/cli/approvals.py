"""Asking the person at the terminal. Enter alone never approves, and anything that is not a clear yes is asked again."""

import asyncio

from holdfast.cli.console import Console, visible
from holdfast.core import Escalation, Response, encode


class TerminalApprover:
    """Shows what waits and reads `/approve` or `/deny`."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def __call__(self, escalation: Escalation) -> Response | None:
        show_escalation(self._console, escalation)
        while True:
            try:
                line = await asyncio.to_thread(input, "approve? [/approve | /deny [reason]] ")
            except EOFError:
                return None
            response = parse_answer(line)
            if response is not None:
                return response
            self._console.say("say /approve or /deny; nothing happens until you do")


def show_escalation(console: Console, escalation: Escalation) -> None:
    """What will happen, the exact call, and why it asks."""
    call, decision = escalation.call, escalation.decision
    console.say()
    console.say(f"  The agent asks to do this: {visible(call.operation)}", "ask")
    for line in visible(encode(call.arguments).decode()).splitlines():
        console.say(f"    {line}")
    console.say(
        f"  It asks because: {visible(decision.reason)} (rule {decision.rule}, {decision.source or 'built-in'})"
    )


def parse_answer(line: str) -> Response | None:
    """A person's words as an answer; None for anything that is neither a yes nor a no."""
    word, _, rest = line.strip().partition(" ")
    if word == "/approve":
        return Response(verdict="approve")
    if word == "/deny":
        return Response(verdict="deny", reason=rest.strip() or None)
    return None
