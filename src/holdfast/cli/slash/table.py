"""The commands of a conversation. Each is a few lines over what the session can do; none has rights of its own."""

from difflib import get_close_matches

import holdfast.cli.slash.answers as answers
import holdfast.cli.slash.changes as changes
import holdfast.cli.slash.places as places
import holdfast.cli.slash.record as record
from holdfast.cli.console import visible
from holdfast.cli.slash.contract import Command, Talking
from holdfast.core.errors import InvalidInput


async def perform(talk: Talking, line: str) -> None:
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


async def _help(talk: Talking, rest: str) -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        talk.screen.say(f"  {command.usage:<{width}}  {command.what}")
    talk.screen.say("  Ctrl-C stops the turn, Ctrl-D leaves")
    talk.screen.say("  Alt-Enter, or a backslash at the end, begins another line of a message")


_ALL = (
    Command("/help", "this list", _help),
    Command("/approve [N|all]", "say yes, once, to what waits", answers.approve),
    Command("/deny [N] [reason]", "say no to what waits", answers.deny),
    Command("/grants", "standing yeses", answers.grants),
    Command("/logs [all]", "what happened: words, code, calls, answers and notes", record.logs),
    Command("/budget", "what may be spent and was", record.budget),
    Command("/cost", "what was spent, in a line", record.cost),
    Command("/diff [PATH...]", "what is staged", changes.diff),
    Command("/commit [PATH...]", "make what is staged", changes.commit),
    Command("/reject [PATH...]", "drop what is staged", changes.reject),
    Command("/rewind [N [go]]", "go back to the end of a turn, files included", changes.rewind),
    Command("/fork [NAME]", "go on in a copy of this session", places.fork),
    Command("/compact", "put a summary in the place of older turns", places.compact),
    Command("/model [NAME]", "which model; or take another", places.model),
    Command("/policy [NAME|FILE]", "which policy; or take another", places.policy),
    Command("/why [CALL]", "why the last call, or this one, was judged as it was", record.why),
    Command("/sessions", "other sessions", places.sessions),
    Command("/resume SESSION", "go to another session", places.resume),
    Command("/rename NAME", "give this session a name", places.rename),
    Command("/files [PATTERN]", "the files it works on", changes.files),
    Command("/quit", "leave; holdfast -c takes it up again", places.leave),
    Command("/exit", "the same", places.leave),
)
COMMANDS: dict[str, Command] = {command.usage.split()[0]: command for command in _ALL}
