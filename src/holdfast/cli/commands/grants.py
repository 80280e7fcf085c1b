"""List saved approvals (grants), or revoke one.

holdfast grants                   the grants for every session, and those of the newest one
holdfast grants revoke ID         takes effect in open sessions at their next call
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.approvals.choose_grant import choose_grant
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.core import GrantId, SessionId, SystemClock, escape_invisible
from holdfast.core.errors import InvalidInput, SessionNotFound
from holdfast.core.projection import ReplayedHistory
from holdfast.gate import Grants, RevokeGrant, SavedGrants
from holdfast.services import active_grants, send_control_request
from holdfast.store import Home, Store

PROGRESS = "reading the grants"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("action", nargs="?", choices=["list", "revoke"], default="list", help="default: list")
    parser.add_argument("grant", nargs="?", help="id of the grant to revoke, or the start of it")
    parser.add_argument("--session", help="id, prefix, last four characters or name (default: the newest)")
    parser.add_argument("--json", action="store_true", help="print a JSON array")


async def run(arguments: argparse.Namespace) -> int:
    """List the grants, or revoke one."""
    console = Console()
    async with open_store() as (home, store):
        saved = SavedGrants.of(home, store)
        await saved.refresh()
        shown = await active_grants(
            store, saved, await _session(store, arguments.session), clock=SystemClock()
        )
        if arguments.action == "revoke":
            # A grant for every session can be revoked in one of them already.
            known = tuple(
                {each.id: each for each in (*saved.load(), *(each.grant for each in shown))}.values()
            )
            id = choose_grant(known, arguments.grant or "", hint="list them with: holdfast grants").id
            if await saved.revoke(id):
                console.say(f"revoked {id}")
            else:
                session = await resolve_session(store, arguments.session)
                console.say(await _revoke(home, store, session, id))
            return exit_codes.OK
    if arguments.json:
        console.json(shown)
    elif not shown:
        console.say("no saved approvals")
    for each in shown if not arguments.json else ():
        console.print(escape_invisible(f"{each.grant.id}  {each.text}"))
    return exit_codes.OK


async def _session(store: Store, reference: str | None) -> SessionId | None:
    """The selected session; None if none is named and there is none."""
    try:
        return await resolve_session(store, reference)
    except SessionNotFound:
        if reference is not None:
            raise
        return None


async def _revoke(home: Home, store: Store, session: SessionId, grant: GrantId) -> str:
    """Revoke a grant in the journal, or by a request to the process that holds the session. Returns a message."""
    recorded = await store.read(session)
    if grant not in {each.id for each in Grants(ReplayedHistory(recorded), clock=SystemClock()).active()}:
        raise InvalidInput(f"there is no active grant {grant!r}", hint="list them with: holdfast grants")
    return await send_control_request(home, store, session, RevokeGrant(grant=grant)) or f"revoked {grant}"
