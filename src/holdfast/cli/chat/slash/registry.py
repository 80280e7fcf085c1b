"""The commands of a conversation. Each is a few lines over what the session can do; none has rights of its own."""

from difflib import get_close_matches

import holdfast.cli.chat.slash.approvals as approvals
import holdfast.cli.chat.slash.files as files
import holdfast.cli.chat.slash.inspect as inspect
import holdfast.cli.chat.slash.session as session
from holdfast.cli.chat.slash.contract import ChatContext, Command
from holdfast.cli.terminal.console import visible
from holdfast.core.errors import InvalidInput


async def perform(talk: ChatContext, line: str) -> None:
    """Do what a line that begins with a slash says."""
    word, _, rest = line.strip().partition(" ")
    command = COMMANDS.get(word)
    if command is None:
        # Never guessed and done: a command cut short may be the yes to a call that waits.
        near = get_close_matches(word, COMMANDS, n=1)
        raise InvalidInput(
            f"there is no {visible(word)}",
            hint=f"did you mean {near[0]}?" if near else "/help lists what there is",
        )
    await command.action(talk, rest.strip())


async def _help(talk: ChatContext, rest: str) -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        talk.screen.say(f"  {command.usage:<{width}}  {command.what}")
    talk.screen.say("  Ctrl-C stops the turn, Ctrl-D leaves")
    talk.screen.say("  Alt-Enter, or a backslash at the end, begins another line of a message")


_ALL = (
    Command("/help", "this list", _help),
    Command("/approve [N|all]", "say yes, once, to what waits", approvals.approve),
    Command("/deny [N] [reason]", "say no to what waits", approvals.deny),
    Command("/grants", "standing yeses", approvals.grants),
    Command("/logs [all]", "what happened: words, code, calls, answers and notes", inspect.logs),
    Command("/budget [add usd=1]", "what may be spent and was; add raises a limit", inspect.budget),
    Command("/cost", "what was spent, in a line", inspect.cost),
    Command("/diff [PATH...]", "what is staged", files.diff),
    Command("/commit [PATH...]", "make what is staged", files.commit),
    Command("/reject [PATH...]", "drop what is staged", files.reject),
    Command("/rewind [N [go]]", "go back to the end of a turn, files included", files.rewind),
    Command("/fork [NAME]", "go on in a copy of this session", session.fork),
    Command("/compact", "put a summary in the place of older turns", session.compact),
    Command("/model [NAME]", "which model; or take another", session.model),
    Command("/policy [NAME|FILE]", "which policy; or take another", session.policy),
    Command("/why [CALL]", "why the last call, or this one, was judged as it was", inspect.why),
    Command("/sessions", "other sessions", session.sessions),
    Command("/resume SESSION", "go to another session", session.resume),
    Command("/rename NAME", "give this session a name", session.rename),
    Command("/files [PATTERN]", "the files it works on", files.files),
    Command("/quit", "leave; holdfast -c takes it up again", session.leave),
    Command("/exit", "the same", session.leave),
)
COMMANDS: dict[str, Command] = {command.usage.split()[0]: command for command in _ALL}
