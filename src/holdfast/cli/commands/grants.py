"""Standing yeses: list them, or take one back.

holdfast grants                   what stands for every session, and in the newest one
holdfast grants revoke ID
"""

import argparse

from holdfast.cli import exits
from holdfast.cli.console import Console
from holdfast.cli.storage import chosen_session, opened_store
from holdfast.core import GrantId, SystemClock
from holdfast.core.errors import InvalidInput
from holdfast.core.events import GrantRevoked
from holdfast.gate import GrantBook, Grants, describe_grant


def configure(parser: argparse.ArgumentParser) -> None:
    """What to do with which."""
    parser.add_argument("action", nargs="?", choices=["list", "revoke"], default="list")
    parser.add_argument("grant", nargs="?", help="the id of a grant, for revoke")
    parser.add_argument("--session", help="id, prefix or name (default: the newest)")
    parser.add_argument("--json", action="store_true", help="a JSON array on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Open the session's journal to read its grants, and to revoke one of them."""
    console = Console()
    async with opened_store() as (home, store):
        book = GrantBook(home.grants)
        session = await chosen_session(store, arguments.session)
        journal = await store.open(session)
        try:
            grants = Grants(journal, clock=SystemClock(), kept=book.grants())
            if arguments.action == "list":
                standing = grants.standing()
            elif arguments.grant in {grant.id for grant in grants.standing()}:
                book.revoke(GrantId(arguments.grant))
                await journal.append(GrantRevoked(grant=GrantId(arguments.grant)))
                console.say(f"revoked {arguments.grant}")
                return exits.OK
            else:
                raise InvalidInput(f"no grant {arguments.grant!r} stands", hint="see: holdfast grants")
        finally:
            await journal.release()
    if arguments.json:
        console.json([{"grant": grant, "text": describe_grant(grant)} for grant in standing])
    elif not standing:
        console.say("no grants stand")
    else:
        for grant in standing:
            console.print(f"{grant.id}  {describe_grant(grant)}")
    return exits.OK
