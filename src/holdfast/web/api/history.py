"""Routes of a session's past and limits: restore points, rewind, fork, budget and saved approvals."""

from holdfast.core import GrantId, Limits, SessionId, Value, parse_limits
from holdfast.core.errors import InvalidInput
from holdfast.gate import RaiseBudget, RevealOutput, RevokeGrant, RewindSession, SavedGrants
from holdfast.services import (
    BudgetView,
    ReturnPoint,
    ShownGrant,
    active_grants,
    return_points,
    send_control_request,
    view_budget,
)
from holdfast.session import RewindPlan, ShownRewind, view_rewind
from holdfast.web.api.sessions import Done, OpenedSession, Started, ask_holder, is_held_elsewhere
from holdfast.web.context import WebContext, WebRequest
from holdfast.web.route import get, post


class RewindBody(Value, forbid_unknown_fields=True):
    """The turn at whose end to rewind, 0 is before the first one; and the digest of the plan that was shown."""

    turn: int
    shown: str


class TurnBody(Value, forbid_unknown_fields=True):
    """The turn at whose end to fork; 0 is before the first one."""

    turn: int


class BudgetBody(Value, forbid_unknown_fields=True):
    """What to add, as on the command line: `usd=1,tokens=50k`."""

    added: str


class OutputBody(Value, forbid_unknown_fields=True):
    """The output that the model may read, by its name."""

    output: str


class GrantBody(Value, forbid_unknown_fields=True):
    """The saved approval to revoke."""

    grant: GrantId


async def list_points(request: WebRequest) -> list[ReturnPoint]:
    """The turns with a restore point, oldest first."""
    return return_points(await request.context.store.read(request.session))


async def preview_rewind(request: WebRequest) -> ShownRewind:
    """What a rewind would change, and what cannot be undone."""
    return ShownRewind.of(await _plan_rewind(request.context, request.session, request.number("turn", 0)))


async def _plan_rewind(context: WebContext, session: SessionId, turn: int) -> RewindPlan:
    if await is_held_elsewhere(context, session):
        return await view_rewind(context.home, context.store, session, turn)
    async with OpenedSession(context, session) as opened:
        return await opened.plan_rewind(turn)


async def rewind(request: WebRequest) -> Done:
    """Rewind, if the plan is what was shown: messages, files, staged changes, budget and grants together."""
    body = request.given(RewindBody)
    if not body.shown:
        raise InvalidInput("a rewind needs the digest of the plan that was shown", hint="read the plan first")
    context, session = request.context, request.session
    if await is_held_elsewhere(context, session):
        return await ask_holder(
            context,
            session,
            RewindSession(
                turn=body.turn, shown=body.shown, principal=request.device.principal, transport="web"
            ),
        )
    async with OpenedSession(context, session) as opened:
        await opened.rewind(body.turn, shown=body.shown, principal=request.device.principal)
    return Done(by_holder=False)


async def reveal(request: WebRequest) -> Done:
    """Let the model read an output that it knows by name only."""
    body = request.given(OutputBody)
    context, session = request.context, request.session
    if await is_held_elsewhere(context, session):
        return await ask_holder(
            context,
            session,
            RevealOutput(output=body.output, principal=request.device.principal, transport="web"),
        )
    async with OpenedSession(context, session) as opened:
        await opened.reveal(body.output, principal=request.device.principal, transport="web")
    return Done(by_holder=False)


async def fork(request: WebRequest) -> Started:
    """Start a new session from the end of a turn; it works in its own folder."""
    body = request.given(TurnBody)
    session = request.session
    made = await request.context.runtime.fork(session, at=body.turn, needs_model=False)
    await made.close()
    return Started(session=made.id)


async def show_budget(request: WebRequest) -> BudgetView:
    """The limits of a session and what it has spent."""
    return await view_budget(request.context.home, request.context.store, request.session)


async def raise_budget(request: WebRequest) -> BudgetView:
    """Add to the limits of a session; its holder applies it at once."""
    body = request.given(BudgetBody)
    context, session = request.context, request.session
    added = parse_limits(body.added)
    if added == Limits():
        raise InvalidInput("nothing was added", hint="write what to add, such as usd=1")
    await send_control_request(
        context.home,
        context.store,
        session,
        RaiseBudget(added=added, principal=request.device.principal, transport="web"),
    )
    return await show_budget(request)


async def list_grants(request: WebRequest) -> list[ShownGrant]:
    """The saved approvals that apply to a session."""
    context = request.context
    saved = SavedGrants.of(context.home, context.store)
    await saved.refresh()
    return await active_grants(context.store, saved, request.session, clock=context.clock)


async def revoke_grant(request: WebRequest) -> list[ShownGrant]:
    """Revoke a saved approval; it counts from the next call on."""
    body = request.given(GrantBody)
    context, session = request.context, request.session
    if body.grant not in {each.grant.id for each in await list_grants(request)}:
        raise InvalidInput(f"there is no active grant {body.grant!r}")
    if not await SavedGrants.of(context.home, context.store).revoke(body.grant):
        await send_control_request(
            context.home,
            context.store,
            session,
            RevokeGrant(grant=body.grant, principal=request.device.principal, transport="web"),
        )
    return [each for each in await list_grants(request) if each.grant.id != body.grant]


ROUTES = (
    get(
        "/api/sessions/{session}/points",
        list_points,
        list[ReturnPoint],
        "The turns that the session can return to, as `holdfast rewind SESSION --json` prints them",
    ),
    get(
        "/api/sessions/{session}/rewind",
        preview_rewind,
        ShownRewind,
        "What a rewind to the end of a turn would change, and what cannot be undone",
        right="operate",
        query=("turn",),
    ),
    post(
        "/api/sessions/{session}/rewind",
        rewind,
        RewindBody,
        Done,
        "Rewind to the end of a turn, if the plan is what was shown",
    ),
    post(
        "/api/sessions/{session}/reveal",
        reveal,
        OutputBody,
        Done,
        "Let the model read an output that is kept from it",
    ),
    post(
        "/api/sessions/{session}/fork", fork, TurnBody, Started, "Start a new session from the end of a turn"
    ),
    get(
        "/api/sessions/{session}/budget",
        show_budget,
        BudgetView,
        "The limits of a session and what it has spent, as `holdfast budget show SESSION --json` prints them",
    ),
    post(
        "/api/sessions/{session}/budget",
        raise_budget,
        BudgetBody,
        BudgetView,
        "Add to the limits of a session",
    ),
    get(
        "/api/sessions/{session}/grants",
        list_grants,
        list[ShownGrant],
        "The saved approvals that apply to a session, as `holdfast grants --session SESSION --json` prints them",
    ),
    post(
        "/api/sessions/{session}/revoke", revoke_grant, GrantBody, list[ShownGrant], "Revoke a saved approval"
    ),
)
