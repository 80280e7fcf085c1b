"""Places in the session list, as a page names the next one."""

from holdfast.core.errors import InvalidInput

MAX_PAGE = 1000


def parse_place(before: str) -> tuple[int, str]:
    """The rank and the id behind which a page begins. Raises InvalidInput."""
    rank, _, id = before.partition(".")
    if not rank.isascii() or not rank.isdigit() or len(rank) > 18:
        raise InvalidInput(f"{before!r} is not a place in the session list", hint="start with the first page")
    return int(rank), id
