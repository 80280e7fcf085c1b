"""Slash commands for files: staged changes, the workspace, and rewinding."""

import asyncio

from holdfast.cli.chat.slash.contract import ChatContext, check_ready
from holdfast.cli.views.tables import proposal_lines
from holdfast.core import escape_invisible
from holdfast.core.errors import InvalidInput


async def diff(chat: ChatContext, rest: str) -> None:
    """Show the staged changes."""
    # In a thread: the diff of a large file takes seconds.
    for proposal in await asyncio.to_thread(chat.session.proposals):
        if not rest or proposal.path in rest.split():
            for line, tone in proposal_lines(proposal):
                chat.screen.say(line, tone)
    if not chat.session.staged_paths():
        chat.screen.say("  nothing is staged")


async def commit(chat: ChatContext, rest: str) -> None:
    """Commit the staged changes."""
    _check_staged(chat)
    await chat.session.commit(*rest.split())
    if asking := [each for each in await asyncio.to_thread(chat.session.proposals) if each.asks]:
        names = " ".join(escape_invisible(each.path) for each in asking)
        chat.screen.say(f"  still staged, because you must approve it by name: /commit {names}", "ask")


async def accept(chat: ChatContext, rest: str) -> None:
    """Accept commits that the agent made in the sandbox, or list them."""
    offered = chat.session.offered_commits()
    if not offered:
        raise InvalidInput("no commits are offered", hint="the agent offers them with git.propose")
    for each in offered:
        chat.screen.say(f"  {escape_invisible(each.ref)}", "strong")
        for subject in each.commits:
            chat.screen.say(f"    {escape_invisible(subject)}")
    if rest != "go":
        chat.screen.say(
            "  /accept go stores them in your repository as this branch; hooks and configuration stay yours"
        )
        return
    for done in await chat.session.accept_commits():
        chat.screen.say(f"  accepted {escape_invisible(done.ref)} at {done.after[:12]}", "good")


async def reject(chat: ChatContext, rest: str) -> None:
    """Reject the staged changes."""
    _check_staged(chat)
    await chat.session.reject(*rest.split())


def _check_staged(chat: ChatContext) -> None:
    if not chat.session.staged_paths():
        raise InvalidInput("nothing is staged")


async def rewind(chat: ChatContext, rest: str) -> None:
    """List the turns, preview a rewind to one, or rewind."""
    turn, _, word = rest.partition(" ")
    if not turn.isdigit():
        for record in chat.session.history():
            chat.screen.say(f"  {record.number:>3}  {' '.join(escape_invisible(record.asked).split())[:70]}")
        chat.screen.say("  /rewind N previews a rewind to the end of turn N; /rewind N go does it")
        return
    await check_ready(chat)
    is_done = word == "go"
    plan = await (chat.session.rewind if is_done else chat.session.plan_rewind)(int(turn))
    for change in plan.changes:
        chat.screen.say(f"  {'' if is_done else 'would be '}{change.kind:<9} {escape_invisible(change.path)}")
    for path in plan.left:
        stays = "stays" if is_done else "would stay"
        chat.screen.say(f"  {stays} unchanged, because it was not saved: {escape_invisible(path)}", "bad")
    for effect in plan.stays:
        chat.screen.say(f"  cannot be undone: {escape_invisible(effect)}", "bad")
    message = (
        f"  rewound to the end of turn {turn}"
        if is_done
        else f"  nothing has changed yet; /rewind {turn} go does it"
    )
    chat.screen.say(message)


async def undo(chat: ChatContext, rest: str) -> None:
    """Undo the last turn. If it had effects that stay, show them first."""
    await check_ready(chat)
    turns = chat.session.history()
    if not turns:
        raise InvalidInput("there is no turn to undo")
    before = turns[-1].number - 1
    plan = await chat.session.plan_rewind(before)
    is_certain = rest == "go" or not (plan.stays or plan.left)
    await rewind(chat, f"{before} go" if is_certain else str(before))


async def files(chat: ChatContext, rest: str) -> None:
    """List the files of the workspace."""
    for path in chat.session.workspace.list(rest or "**/*"):
        chat.screen.say(f"  {escape_invisible(path)}")
