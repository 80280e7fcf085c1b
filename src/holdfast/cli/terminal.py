"""The terminal of a person, put together: the editor or plain lines, the screen, the keyboard, and the conversation."""

import sys

from holdfast.app import Runtime
from holdfast.cli.cells import shortened
from holdfast.cli.console import visible, wants_plain
from holdfast.cli.keyboard import LineKeyboard, RawKeyboard
from holdfast.cli.line_editor import EditedLines, PlainLines
from holdfast.cli.screen import LiveScreen, PlainScreen, Screen
from holdfast.cli.slash import COMMANDS
from holdfast.cli.talk import Talk
from holdfast.core import counted
from holdfast.session import Session


async def talk_at_terminal(runtime: Runtime, session: Session, *, is_plain: bool | None = None) -> int:
    """Talk with a session until the person leaves."""
    if wants_plain(is_plain):
        plain = PlainScreen()
        lines = LineKeyboard(write=lambda text: print(text, end="", file=sys.stderr, flush=True))
        talk = Talk(runtime=runtime, screen=plain, keyboard=lines)
        talk.source = PlainLines(plain, lines)
    else:
        screen = LiveScreen()
        talk = Talk(runtime=runtime, screen=screen, keyboard=RawKeyboard())
        history = runtime.home.root / "history"
        talk.source = EditedLines(screen, history=history, status=talk.status, words=COMMANDS.keys)
    welcome(talk.screen, session)
    return await talk.run(session)


def welcome(screen: Screen, session: Session) -> None:
    """Who, how far, what waits, what may be spent: shown to the person, not to the model."""
    name = session.status.name or session.id
    turns = len(session.history())
    if not turns:
        screen.say(f"session {name}; /help lists commands, Ctrl-D leaves", "dim", folds=True)
        return
    screen.say(
        f"{session.status.model}, policy {visible(session.status.policy)}; /help lists commands, Ctrl-D leaves",
        "dim",
        folds=True,
    )
    asked = " ".join(visible(session.history()[-1].asked).split())
    screen.say(f"  last asked: {shortened(asked, 60)}", "dim")
    if waiting := session.escalations():
        screen.say(f"  waits for you: {counted(len(waiting), 'call')}", "ask")
    if staged := session.proposals():
        screen.say(f"  staged: {', '.join(proposal.path for proposal in staged)} (/diff shows)", "ask")
