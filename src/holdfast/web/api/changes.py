"""Routes of staged changes: shown as diffs, committed with the digests of what was shown, or rejected; and the merge of a fork."""

from collections.abc import Sequence

from holdfast.core import Value, digest, escape_invisible
from holdfast.core.errors import CommitConflict, InvalidInput
from holdfast.gate import CommitProposals, DecideHunks, RejectProposals
from holdfast.services import CheckRun, check_proposed, decide_hunks
from holdfast.session import ShownMerge, view_staged
from holdfast.web.api.sessions import Done, OpenedSession, ask_holder, is_held_elsewhere
from holdfast.web.context import WebRequest
from holdfast.web.route import get, post
from holdfast.world import HunkDecision, Proposal


class ShownProposal(Value, omit_defaults=False):
    """A proposal with nothing invisible in it, and the digest that goes along with a commit."""

    path: str
    """The real path; the page shows it escaped."""
    digest: str
    proposal: Proposal


class CommitBody(Value, forbid_unknown_fields=True):
    """The digest of each proposal to commit, by its path, and a command that must succeed before."""

    shown: dict[str, str]
    check: str = ""


class HunksBody(Value, forbid_unknown_fields=True):
    """What was decided about the hunks of proposals; the others stay staged."""

    decisions: tuple[HunkDecision, ...]


class Committed(Value):
    """What was committed; by the process that holds the session, or here."""

    by_holder: bool
    check: CheckRun | None = None
    """How the command ended that had to succeed before."""


class MergeBody(Value, forbid_unknown_fields=True):
    """The digest of the merge that was shown."""

    shown: str


class RejectBody(Value, forbid_unknown_fields=True):
    """The paths to reject."""

    paths: tuple[str, ...]


async def list_changes(request: WebRequest) -> list[ShownProposal]:
    """The staged changes of a session, whichever process holds it."""
    context, session = request.context, request.session
    hosted = context.hosted.get(session)
    if hosted is not None:
        proposals = hosted.proposals()
    else:
        staged = await view_staged(context.home, context.store, session)
        proposals = staged.proposals()
    return [ShownProposal(path=each.path, digest=digest(each), proposal=_visible(each)) for each in proposals]


def _visible(proposal: Proposal) -> Proposal:
    return Proposal(
        path=escape_invisible(proposal.path),
        kind=proposal.kind,
        diff=escape_invisible(proposal.diff),
        is_binary=proposal.is_binary,
        renamed_from=None if proposal.renamed_from is None else escape_invisible(proposal.renamed_from),
        mode=proposal.mode,
        runs_when=proposal.runs_when,
        asks=escape_invisible(proposal.asks),
    )


async def commit(request: WebRequest) -> Committed:
    """Commit the changes that were shown, all of them or none."""
    body = request.given(CommitBody)
    check = await _check(request, body) if body.check.strip() else None
    context, session = request.context, request.session
    if await is_held_elsewhere(context, session):
        await ask_holder(
            context,
            session,
            CommitProposals(shown=body.shown, principal=request.device.principal, transport="web"),
        )
        return Committed(by_holder=True, check=check)
    async with OpenedSession(context, session) as opened:
        _compare(body.shown, opened.proposals())
        await opened.commit(*body.shown, principal=request.device.principal)
    return Committed(by_holder=False, check=check)


async def _check(request: WebRequest, body: CommitBody) -> CheckRun:
    """Run the person's command over all changes. Raises CommitConflict if it fails, or if only some are committed."""
    context = request.context
    staged = await view_staged(context.home, context.store, request.session)
    proposals = staged.proposals()
    if set(body.shown) != {each.path for each in proposals}:
        raise CommitConflict("a check works only when all changes are committed", hint="choose every file")
    _compare(body.shown, proposals)
    done = await check_proposed(
        staged, body.check, sandboxes=context.runtime.sandboxes, settings=context.runtime.settings.shell
    )
    if not done.is_passed:
        ended = "did not come to an end" if done.code is None else f"exited with {done.code}"
        raise CommitConflict(f"nothing was committed: the check {ended}", hint=done.output[-4000:])
    return done


def _compare(shown: dict[str, str], proposals: Sequence[Proposal]) -> None:
    """Raise CommitConflict unless these are the changes that a person saw."""
    staged = {each.path: digest(each) for each in proposals}
    if not shown or any(staged.get(path) != given for path, given in shown.items()):
        raise CommitConflict("these changes are not the ones that you were shown", hint="look at them again")


async def decide(request: WebRequest) -> Committed:
    """Commit the accepted hunks and drop the rejected ones."""
    body = request.given(HunksBody)
    context, session = request.context, request.session
    if not any(each.accepted or each.rejected for each in body.decisions):
        raise InvalidInput("nothing was decided")
    if await is_held_elsewhere(context, session):
        await ask_holder(
            context,
            session,
            DecideHunks(decisions=body.decisions, principal=request.device.principal, transport="web"),
        )
        return Committed(by_holder=True)
    async with OpenedSession(context, session) as opened:
        await decide_hunks(opened, body.decisions, principal=request.device.principal)
    return Committed(by_holder=False)


async def preview_merge(request: WebRequest) -> ShownMerge:
    """What a merge of this fork would change, whichever process holds it or its parent."""
    return ShownMerge.of(await request.context.runtime.plan_merge(request.session))


async def merge(request: WebRequest) -> Done:
    """Commit what a fork changed in the folder of its parent, if it is what was shown."""
    body, runtime = request.given(MergeBody), request.context.runtime
    plan = await runtime.plan_merge(request.session)
    if digest(plan) != body.shown:
        raise CommitConflict("the files changed since the merge was shown", hint="look at it again")
    await runtime.merge(request.session, shown=plan)
    return Done(by_holder=False)


async def reject(request: WebRequest) -> Done:
    """Drop staged changes."""
    body = request.given(RejectBody)
    context, session = request.context, request.session
    if await is_held_elsewhere(context, session):
        return await ask_holder(
            context,
            session,
            RejectProposals(paths=body.paths, principal=request.device.principal, transport="web"),
        )
    async with OpenedSession(context, session) as opened:
        await opened.reject(*body.paths, principal=request.device.principal)
    return Done(by_holder=False)


ROUTES = (
    get(
        "/api/sessions/{session}/changes",
        list_changes,
        list[ShownProposal],
        "The staged changes as unified diffs, each with its digest",
    ),
    post(
        "/api/sessions/{session}/commit", commit, CommitBody, Committed, "Commit the changes that were shown"
    ),
    post(
        "/api/sessions/{session}/hunks",
        decide,
        HunksBody,
        Committed,
        "Commit the accepted hunks, drop the rejected ones",
    ),
    post("/api/sessions/{session}/reject", reject, RejectBody, Done, "Reject staged changes"),
    get(
        "/api/sessions/{session}/merge",
        preview_merge,
        ShownMerge,
        "What a merge of a fork would change in the folder of its parent",
        right="operate",
    ),
    post(
        "/api/sessions/{session}/merge",
        merge,
        MergeBody,
        Done,
        "Merge a fork into the folder of its parent",
    ),
)
