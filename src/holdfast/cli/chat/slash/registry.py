"""The list of slash commands. Each calls the public session API and has no rights of its own."""

from difflib import get_close_matches

import holdfast.cli.chat.slash.approvals as approvals
import holdfast.cli.chat.slash.files as files
import holdfast.cli.chat.slash.inspect as inspect
import holdfast.cli.chat.slash.session as session
from holdfast.cli.chat.slash.contract import ChatContext, Command
from holdfast.core import escape_invisible
from holdfast.core.errors import InvalidInput


async def run_slash_command(chat: ChatContext, line: str) -> None:
    """Run the slash command in a line. Raises InvalidInput for an unknown command and for several at once."""
    word, *words = line.split(maxsplit=1)
    rest = words[0] if words else ""
    if any(each.split()[0] in COMMANDS for each in rest.splitlines() if each.startswith("/")):
        raise InvalidInput("these are several commands; nothing was done", hint="send one command at a time")
    command = COMMANDS.get(word)
    if command is None:
        # Never guess: an incomplete command may be meant to approve a waiting call.
        near = get_close_matches(word, COMMANDS, n=2)
        raise InvalidInput(
            f"unknown command {escape_invisible(word)}",
            hint=f"did you mean {' or '.join(near)}?" if near else "/help lists the commands",
        )
    await command.action(chat, rest.strip())


async def _help(chat: ChatContext, rest: str) -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        chat.screen.say(f"  {command.usage:<{width}}  {command.description}")
    chat.screen.say("  @PATH attaches a file to the message; Tab completes it")
    chat.screen.say("  !COMMAND runs a program in the sandbox, without the model")
    chat.screen.say("  Alt-Enter, or a backslash at the end of a line, starts another line")
    chat.screen.say("  Ctrl-C stops the turn, Ctrl-R searches what you typed, Ctrl-O unfolds")
    chat.screen.say("  Shift-Tab changes the mode, Ctrl-D quits")


_ALL = (
    Command("/help", "show this list", _help),
    Command("/approve [N|all]", "approve a waiting call once", approvals.approve),
    Command("/deny [N] [reason]", "deny a waiting call", approvals.deny),
    Command("/grants [revoke ID]", "list or revoke saved approvals", approvals.grants),
    Command("/logs [all]", "show messages, code, calls, answers and notes", inspect.logs),
    Command("/unfold", "show the newest folded text (Ctrl-O)", inspect.unfold),
    Command("/status", "show context, cost, limits, what waits and what runs", inspect.status),
    Command("/preview PORT [PORT]", "open a server in the sandbox to your browser", inspect.preview),
    Command("/budget [add usd=1]", "show limits and spending; add raises a limit", inspect.budget),
    Command("/cost", "show spending in one line", inspect.cost),
    Command("/diff [-p] [PATH...]", "show staged changes; -p as /review", files.diff),
    Command("/review [PATH...]", "accept or reject staged changes hunk by hunk", files.review),
    Command("/commit [--check CMD]", "commit staged changes, if the command succeeds", files.commit),
    Command("/accept [COMMIT]", "list commits made in the sandbox, or accept them", files.accept),
    Command("/reject [PATH...]", "reject staged changes", files.reject),
    Command("/rewind [N [go]]", "return to the end of a turn, files included", files.rewind),
    Command("/undo [go]", "undo the last turn: messages and files", files.undo),
    Command("/fork [NAME]", "continue in a copy of this session", session.fork),
    Command("/merge [go]", "show what this fork changed, or bring it to its parent", session.merge),
    Command("/compact", "replace older turns with a summary", session.compact),
    Command("/model [NAME|all]", "list the provider's models and prices, or switch", session.model),
    Command("/policy [NAME|FILE]", "show the policy, or switch to another", session.policy),
    Command("/mode [ask|edits|plan]", "show the mode, or switch it (Shift-Tab)", session.mode),
    Command("/go", "carry out the plan of mode plan", session.carry_out),
    Command("/reveal [NAME]", "list what is kept from the model, or let it read one", inspect.reveal),
    Command("/why [CALL]", "explain the decision about the last call, or this one", inspect.why),
    Command("/sessions", "list sessions", session.sessions),
    Command("/resume [SESSION]", "switch to another session, named or picked from a list", session.resume),
    Command("/rename NAME", "rename this session", session.rename),
    Command("/files [PATTERN]", "list the files of the workspace", files.files),
    Command("/copy", "copy the last answer to the clipboard of the terminal", session.copy),
    Command("/export [FILE]", "write this session to a file", session.export),
    Command("/quit", "quit; holdfast -c resumes the session", session.leave),
    Command("/exit", "same as /quit", session.leave),
)
COMMANDS: dict[str, Command] = {command.usage.split()[0]: command for command in _ALL}
