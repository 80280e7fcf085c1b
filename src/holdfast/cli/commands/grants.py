"""Standing yeses: list them, or take one back.

holdfast grants                   what stands for every session, and in the newest one
holdfast grants revoke ID         live sessions heed it at their next call
"""

import argparse

from holdfast.cli import exits
from holdfast.cli.console import Console
from holdfast.cli.storage import chosen_session, opened_store
from holdfast.core import Grant, GrantId, SessionId, SystemClock
from holdfast.core.errors import InvalidInput
from holdfast.core.events import GrantRevoked
from holdfast.core.fold import Reading
from holdfast.gate import GrantBook, Grants, describe_grant
from holdfast.store import EmbeddedStore


def configure(parser: argparse.ArgumentParser) -> None:
    """What to do with which."""
    parser.add_argument("action", nargs="?", choices=["list", "revoke"], default="list")
    parser.add_argument("grant", nargs="?", help="the id of a grant, for revoke")
    parser.add_argument("--session", help="id, prefix or name (default: the newest)")
    parser.add_argument("--json", action="store_true", help="a JSON array on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Read what stands in the book and in the session; revoke where it stands."""
    console = Console()
    async with opened_store() as (home, store):
        book = GrantBook(home.grants)
        if arguments.action == "revoke":
            if not book.revoke(GrantId(arguments.grant or "")):
                session = await chosen_session(store, arguments.session)
                await _revoke(store, session, GrantId(arguments.grant or ""))
            console.say(f"revoked {arguments.grant}")
            return exits.OK
        session = await chosen_session(store, arguments.session)
        standing = await _standing(store, session, book)
    if arguments.json:
        console.json([{"grant": grant, "text": describe_grant(grant)} for grant in standing])
    elif not standing:
        console.say("no grants stand")
    for grant in standing if not arguments.json else ():
        console.print(f"{grant.id}  {describe_grant(grant)}")
    return exits.OK


async def _standing(store: EmbeddedStore, session: SessionId, book: GrantBook) -> tuple[Grant, ...]:
    return Grants(Reading(await store.read(session)), clock=SystemClock(), book=book.grants).standing()


async def _revoke(store: EmbeddedStore, session: SessionId, grant: GrantId) -> None:
    journal = await store.open(session)
    try:
        if grant not in {each.id for each in Grants(journal, clock=SystemClock()).standing()}:
            raise InvalidInput(f"no grant {grant!r} stands", hint="see: holdfast grants")
        await journal.append(GrantRevoked(grant=grant))
    finally:
        await journal.release()
