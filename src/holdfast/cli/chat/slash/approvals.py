"""Slash commands to answer waiting calls and list saved approvals."""

from holdfast.cli.chat.slash.contract import ChatContext
from holdfast.core import Escalation, Response, escape_invisible
from holdfast.core.approval_text import describe_effect
from holdfast.core.errors import InvalidInput


async def approve(chat: ChatContext, rest: str) -> None:
    """Approve a waiting call once, or all of them."""
    waiting = chat.session.escalations()
    chosen = waiting if rest == "all" and waiting else (_chosen(waiting, rest),)
    for escalation in chosen:
        await chat.session.resolve(escalation.id, Response(verdict="approve"), transport=chat.name)


async def deny(chat: ChatContext, rest: str) -> None:
    """Deny a waiting call, with an optional reason."""
    number, _, reason = rest.partition(" ")
    if not number.isdigit():
        number, reason = "", rest
    escalation = _chosen(chat.session.escalations(), number)
    response = Response(verdict="deny", reason=reason.strip() or None)
    await chat.session.resolve(escalation.id, response, transport=chat.name)


def _chosen(waiting: tuple[Escalation, ...], number: str) -> Escalation:
    if not waiting:
        raise InvalidInput("no call waits for approval")
    if not number and len(waiting) == 1:
        return waiting[0]
    if number.isdigit() and 1 <= int(number) <= len(waiting):
        return waiting[int(number) - 1]
    listed = "; ".join(f"{number} {describe_effect(each)}" for number, each in enumerate(waiting, 1))
    raise InvalidInput(f"{len(waiting)} calls wait: {listed}", hint="name one by its number")


async def grants(chat: ChatContext, rest: str) -> None:
    """List the active grants, or revoke one."""
    from holdfast.cli.approvals.choose_grant import choose_grant
    from holdfast.gate import describe_grant

    grants = chat.session.grants()
    word, _, reference = rest.partition(" ")
    if word == "revoke":
        revoked = choose_grant(grants, reference, hint="/grants lists them", is_numbered=True)
        await chat.session.revoke(revoked.id)
        everywhere = f" in this session; everywhere: holdfast grants revoke {revoked.id}"
        chat.screen.say(
            f"  revoked {revoked.id}{everywhere if revoked.scope == 'always' else ''}", folds=True
        )
        return
    for number, grant in enumerate(grants, 1):
        chat.screen.say(f"  {number}  {grant.id}  {escape_invisible(describe_grant(grant))}", folds=True)
    if not grants:
        chat.screen.say("  no saved approvals")
