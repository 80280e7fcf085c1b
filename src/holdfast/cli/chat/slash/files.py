"""The files: what is staged, what is there, and going back to how they were."""

from holdfast.cli.chat.slash.contract import ChatContext, check_ready
from holdfast.cli.views.tables import proposal_lines
from holdfast.core import escape_invisible
from holdfast.core.errors import InvalidInput


async def diff(talk: ChatContext, rest: str) -> None:
    """Show what is staged."""
    for proposal in talk.session.proposals():
        if not rest or proposal.path in rest.split():
            for line, tone in proposal_lines(proposal):
                talk.screen.say(line, tone)
    if not talk.session.proposals():
        talk.screen.say("  nothing is staged")


async def commit(talk: ChatContext, rest: str) -> None:
    """Make what is staged."""
    _check_staged(talk)
    await talk.session.commit(*rest.split())


async def reject(talk: ChatContext, rest: str) -> None:
    """Drop what is staged."""
    _check_staged(talk)
    await talk.session.reject(*rest.split())


def _check_staged(talk: ChatContext) -> None:
    if not talk.session.proposals():
        raise InvalidInput("nothing is staged")


async def rewind(talk: ChatContext, rest: str) -> None:
    """List the turns, show the way back to one, or take it."""
    turn, _, word = rest.partition(" ")
    if not turn.isdigit():
        for record in talk.session.history():
            talk.screen.say(f"  {record.number:>3}  {' '.join(escape_invisible(record.asked).split())[:70]}")
        talk.screen.say("  /rewind N shows the way back to the end of turn N; /rewind N go takes it")
        return
    await check_ready(talk)
    is_done = word == "go"
    plan = await (talk.session.rewind if is_done else talk.session.plan_rewind)(int(turn))
    for change in plan.changes:
        talk.screen.say(f"  {'' if is_done else 'would be '}{change.kind:<9} {escape_invisible(change.path)}")
    for path in plan.left:
        stays = "stays" if is_done else "would stay"
        talk.screen.say(f"  {stays} as it is, because it was not kept: {escape_invisible(path)}", "bad")
    for effect in plan.stays:
        talk.screen.say(f"  cannot be undone: {escape_invisible(effect)}", "bad")
    said = (
        f"  back at the end of turn {turn}"
        if is_done
        else f"  nothing is changed yet; /rewind {turn} go takes you there"
    )
    talk.screen.say(said)


async def files(talk: ChatContext, rest: str) -> None:
    """List the files it works on."""
    for path in talk.session.workspace.list(rest or "**/*"):
        talk.screen.say(f"  {escape_invisible(path)}")
