"""Commands that a member can write in a thread instead of a message."""

from typing import Protocol

from holdfast.app import Runtime
from holdfast.core import escape_invisible, pluralize
from holdfast.core.approval_text import describe_effect
from holdfast.messengers.contract import IncomingMessage
from holdfast.services import decide_proposals
from holdfast.session import Session

HELP = """\
Write what the agent should do. Commands:
/cancel  stop the turn
/diff  show the staged changes
/commit  commit the staged changes
/reject  drop the staged changes
/new  start a new session in this thread
/sessions  list the sessions of this messenger
/waiting  list what waits for an answer"""
MAX_LISTED = 20


class ThreadHost(Protocol):
    """What a command needs of the bridge."""

    name: str
    runtime: Runtime

    def live_session(self, thread: str) -> Session | None: ...
    async def open_session(self, thread: str, channel: str, *, is_new: bool = False) -> Session: ...
    async def say(self, thread: str, text: str) -> bool: ...
    def has_seen_changes(self, item: IncomingMessage, session: Session) -> bool: ...
    async def show_changes(self, thread: str, session: Session) -> None: ...


async def run_command(bridge: ThreadHost, item: IncomingMessage, text: str) -> None:
    """Run a command and reply."""
    words = text.split()
    name = words[0].partition("@")[0]  # Telegram writes /diff@bot in groups
    session = bridge.live_session(item.thread)
    match name:
        case "/cancel" if session is not None:
            await session.cancel()
            await bridge.say(item.thread, "Stopped. Completed actions are not undone.")
        case "/new":
            if session is not None:
                await session.close()
            await bridge.open_session(item.thread, item.channel, is_new=True)
            await bridge.say(item.thread, "This is a new session.")
        case "/diff" | "/commit" | "/reject":
            session = session or await bridge.open_session(item.thread, item.channel)
            if not session.proposals():
                await bridge.say(item.thread, "Nothing is staged.")
            elif name == "/diff":
                await bridge.show_changes(item.thread, session)
            elif name == "/commit" and not bridge.has_seen_changes(item, session):
                await bridge.say(item.thread, "Not committed: this is staged now, and was not shown before.")
                await bridge.show_changes(item.thread, session)
            else:
                decided = await decide_proposals(session, "commit" if name == "/commit" else "reject")
                done = "Committed" if name == "/commit" else "Rejected"
                names = ", ".join(map(escape_invisible, decided.paths)) or "nothing"
                asking = ", ".join(map(escape_invisible, decided.asking))
                more = (
                    f"\nStill staged, because it needs approval on your machine: {asking}" if asking else ""
                )
                await bridge.say(item.thread, f"{done}: {names}{more}")
        case "/sessions":
            found = [
                each
                for each in await bridge.runtime.store.sessions()
                if each.id.startswith(f"{bridge.name}-")
            ]
            lines = [
                f"{each.id}: {each.activity}, {pluralize(each.turns, 'turn')}" for each in found[:MAX_LISTED]
            ]
            await bridge.say(item.thread, "\n".join(lines) or "There are no sessions yet.")
        case "/waiting":
            waiting = session.escalations() if session is not None else ()
            lines = [describe_effect(each) for each in waiting]
            await bridge.say(item.thread, "\n".join(lines) or "Nothing waits in this thread.")
        case _:
            await bridge.say(item.thread, HELP)
