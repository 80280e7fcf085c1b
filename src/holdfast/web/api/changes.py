"""Routes of staged changes: shown as diffs, committed with the digests of what was shown, or rejected."""

from holdfast.core import Value, digest, escape_invisible
from holdfast.core.errors import CommitConflict
from holdfast.gate import CommitProposals, RejectProposals
from holdfast.session import view_staged
from holdfast.web.api.sessions import Done, OpenedSession, ask_holder, is_held_elsewhere
from holdfast.web.context import WebRequest
from holdfast.web.route import get, post
from holdfast.world import Proposal


class ShownProposal(Value, omit_defaults=False):
    """A proposal with nothing invisible in it, and the digest that goes along with a commit."""

    path: str
    """The real path; the page shows it escaped."""
    digest: str
    proposal: Proposal


class CommitBody(Value, forbid_unknown_fields=True):
    """The digest of each proposal to commit, by its path."""

    shown: dict[str, str]


class RejectBody(Value, forbid_unknown_fields=True):
    """The paths to reject."""

    paths: tuple[str, ...]


async def list_changes(request: WebRequest) -> list[ShownProposal]:
    """The staged changes of a session, whoever holds it."""
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


async def commit(request: WebRequest) -> Done:
    """Commit the changes that were shown, all of them or none."""
    body = request.given(CommitBody)
    context, session = request.context, request.session
    if await is_held_elsewhere(context, session):
        return await ask_holder(context, session, CommitProposals(shown=body.shown, transport="web"))
    async with OpenedSession(context, session) as opened:
        staged = {each.path: digest(each) for each in opened.proposals()}
        if not body.shown or any(staged.get(path) != shown for path, shown in body.shown.items()):
            raise CommitConflict(
                "these changes are not the ones that you were shown", hint="look at them again"
            )
        await opened.commit(*body.shown)
    return Done(by_holder=False)


async def reject(request: WebRequest) -> Done:
    """Drop staged changes."""
    body = request.given(RejectBody)
    context, session = request.context, request.session
    if await is_held_elsewhere(context, session):
        return await ask_holder(context, session, RejectProposals(paths=body.paths, transport="web"))
    async with OpenedSession(context, session) as opened:
        await opened.reject(*body.paths)
    return Done(by_holder=False)


ROUTES = (
    get(
        "/api/sessions/{session}/changes",
        list_changes,
        list[ShownProposal],
        "The staged changes as unified diffs, each with its digest",
    ),
    post("/api/sessions/{session}/commit", commit, CommitBody, Done, "Commit the changes that were shown"),
    post("/api/sessions/{session}/reject", reject, RejectBody, Done, "Reject staged changes"),
)
