"""Answering what waits, and the standing yeses that came of it."""

from holdfast.cli.approvals.text import describe_effect
from holdfast.cli.chat.slash.contract import ChatContext
from holdfast.core import Escalation, Response, escape_invisible
from holdfast.core.errors import InvalidInput


async def approve(talk: ChatContext, rest: str) -> None:
    """Say yes, once."""
    waiting = talk.session.escalations()
    chosen = waiting if rest == "all" and waiting else (_chosen(waiting, rest),)
    for escalation in chosen:
        await talk.session.resolve(escalation.id, Response(verdict="approve"), transport=talk.name)


async def deny(talk: ChatContext, rest: str) -> None:
    """Say no, with a reason for the agent."""
    number, _, reason = rest.partition(" ")
    if not number.isdigit():
        number, reason = "", rest
    escalation = _chosen(talk.session.escalations(), number)
    response = Response(verdict="deny", reason=reason.strip() or None)
    await talk.session.resolve(escalation.id, response, transport=talk.name)


def _chosen(waiting: tuple[Escalation, ...], number: str) -> Escalation:
    if not waiting:
        raise InvalidInput("nothing waits for you")
    if not number and len(waiting) == 1:
        return waiting[0]
    if number.isdigit() and 1 <= int(number) <= len(waiting):
        return waiting[int(number) - 1]
    listed = "; ".join(f"{place} {describe_effect(each)}" for place, each in enumerate(waiting, 1))
    raise InvalidInput(f"{len(waiting)} wait: {listed}", hint="say which by its number")


async def grants(talk: ChatContext, rest: str) -> None:
    """List what stands."""
    from holdfast.gate import describe_grant

    grants = talk.session.grants()
    for grant in grants:
        talk.screen.say(f"  {grant.id}  {escape_invisible(describe_grant(grant))}", folds=True)
    if not grants:
        talk.screen.say("  no grants stand")
