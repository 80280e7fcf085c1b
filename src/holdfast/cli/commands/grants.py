"""Standing yeses: list them, or take one back.

holdfast grants                   what stands for every session, and in the newest one
holdfast grants revoke ID         live sessions heed it at their next call
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.open_store import chosen_session, open_store
from holdfast.cli.session_requests import send_control_request
from holdfast.cli.terminal.console import Console, visible
from holdfast.core import Grant, GrantId, SessionId, SystemClock
from holdfast.core.errors import InvalidInput, SessionNotFound
from holdfast.core.projection import ReplayedHistory
from holdfast.gate import Grants, RevokeGrant, SavedGrants, describe_grant
from holdfast.store import Home, SqliteStore

WORKING = "reads the grants"


def configure(parser: argparse.ArgumentParser) -> None:
    """What to do with which."""
    parser.add_argument("action", nargs="?", choices=["list", "revoke"], default="list", help="default: list")
    parser.add_argument("grant", nargs="?", help="the id of a grant, for revoke")
    parser.add_argument("--session", help="id, prefix or name (default: the newest)")
    parser.add_argument("--json", action="store_true", help="a JSON array on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Read what stands in the book and in the session; revoke where it stands."""
    console = Console()
    async with open_store() as (home, store):
        book = SavedGrants(home.grants)
        if arguments.action == "revoke":
            id = GrantId(arguments.grant or "")
            if book.revoke(id):
                console.say(f"revoked {id}")
            else:
                session = await chosen_session(store, arguments.session)
                console.say(await _revoke(home, store, session, id))
            return exit_codes.OK
        standing = await _standing(store, arguments.session, book)
    if arguments.json:
        console.json([{"grant": grant, "text": describe_grant(grant)} for grant in standing])
    elif not standing:
        console.say("no grants stand")
    for grant in standing if not arguments.json else ():
        console.print(visible(f"{grant.id}  {describe_grant(grant)}"))
    return exit_codes.OK


async def _standing(store: SqliteStore, reference: str | None, book: SavedGrants) -> tuple[Grant, ...]:
    """What stands for every session, and in the one that is meant; none is there yet where nobody began one."""
    try:
        recorded = await store.read(await chosen_session(store, reference))
    except SessionNotFound:
        if reference is not None:
            raise
        recorded = ()
    return Grants(ReplayedHistory(recorded), clock=SystemClock(), saved=book.load).active()


async def _revoke(home: Home, store: SqliteStore, session: SessionId, grant: GrantId) -> str:
    """Take it back: in the journal, or where another process holds it, by asking that one. Tells what happened."""
    recorded = await store.read(session)
    if grant not in {each.id for each in Grants(ReplayedHistory(recorded), clock=SystemClock()).active()}:
        raise InvalidInput(f"no grant {grant!r} stands", hint="see: holdfast grants")
    return await send_control_request(home, store, session, RevokeGrant(grant=grant)) or f"revoked {grant}"
