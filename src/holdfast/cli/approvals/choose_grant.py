"""Choosing the grant that a person means: by its id, the start of it, or its number in a list."""

from collections.abc import Sequence

from holdfast.core import Grant
from holdfast.core.errors import InvalidInput


def choose_grant(grants: Sequence[Grant], reference: str, *, hint: str, is_numbered: bool = False) -> Grant:
    """The grant with this id, start of an id, or number if the list has numbers. Raises InvalidInput."""
    wanted = reference.strip()
    if not wanted:
        raise InvalidInput("no grant given", hint=hint)
    if exact := [grant for grant in grants if grant.id == wanted]:
        return exact[0]
    if is_numbered:
        for number, grant in enumerate(grants, 1):
            if wanted == str(number):
                return grant
    found = [grant for grant in grants if grant.id.startswith(wanted)]
    if not found:
        raise InvalidInput(f"there is no active grant {wanted!r}", hint=hint)
    if len(found) > 1:
        ids = ", ".join(grant.id for grant in found)
        raise InvalidInput(f"{wanted!r} is the start of several grants: {ids}", hint="give more of the id")
    return found[0]
