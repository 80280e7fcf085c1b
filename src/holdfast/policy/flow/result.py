"""The result of the analysis: for each call of a program, the origins of its arguments."""

from collections.abc import Mapping

import msgspec

from holdfast.core import UNKNOWN, Origins, Value

Place = tuple[int, int]
"""Start and end of a call expression in the program, as offsets of its UTF-8 bytes."""

ANYTHING: Origins = frozenset({UNKNOWN})


class Signature(Value):
    """A tool as programs call it."""

    operation: str
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    """In call order: the tool's own name of each parameter, by the name that programs use."""


class Site(Value):
    """A call expression: what its arguments are made of, over all calls made from there."""

    operations: frozenset[str]
    arguments: dict[str, Origins] = msgspec.field(default_factory=dict)
    rest: Origins = frozenset()
    """What may be in any argument, because it was given as `*args` or `**kwargs`."""
    condition: Origins = frozenset()
    """What decided whether the call is made."""

    def origins_of(self, argument: str) -> Origins:
        """What an argument is made of. An argument that the call does not name comes from nowhere the analysis knows."""
        if argument in self.arguments:
            return self.arguments[argument] | self.rest
        return self.rest or ANYTHING


class Flow(Value):
    """The information flow of one program."""

    sites: dict[Place, Site] = msgspec.field(default_factory=dict)
    shown: Origins = frozenset()
    """What it prints, and its last expression."""
    variables: dict[str, Origins] = msgspec.field(default_factory=dict)
    """What it leaves to later programs, by the name of the variable."""
    unknown: str = ""
    """Why the program cannot be followed; then everything may be in everything."""

    def origins_of(self, place: Place | None, operation: str, argument: str) -> Origins:
        """What an argument of a call from a place is made of; anything, if the analysis does not know the call."""
        site = self.sites.get(place) if place is not None and not self.unknown else None
        return ANYTHING if site is None or operation not in site.operations else site.origins_of(argument)


def unknown_flow(reason: str, *, variables: Mapping[str, Origins] | None = None) -> Flow:
    """The flow of a program that cannot be followed, and what it leaves to later ones: by default, anything in every variable."""
    left = {"*": ANYTHING} if variables is None else dict(variables)
    return Flow(shown=ANYTHING, variables=left, unknown=reason)
