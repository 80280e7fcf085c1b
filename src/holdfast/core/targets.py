"""Targets: what the arguments of a call refer to once resolved. Policies judge targets, never raw strings.

Resolving a path touches the disk, judging must not; so the gate resolves first and hands the targets in.
"""

from typing import Protocol

from holdfast.core.tools import Role
from holdfast.core.values import Value


class Location(Value):
    """Where a path leads. `problem` says why it cannot be resolved; then nothing may be done with it."""

    given: str
    real: str = ""
    """The absolute path on the host, every symlink followed."""
    inside: str | None = None
    """The normalised path relative to the workspace, None when it lies outside. The workspace itself is `.`."""
    protected: str | None = None
    """Which protection covers it; a protected path is denied whatever the policy says."""
    problem: str | None = None


class Paths(Protocol):
    """Who resolves paths; the world does."""

    def locate(self, given: str) -> Location:
        """Where a path given by a guest leads; never raises on hostile input."""
        ...


class PathTarget(Value, tag_field="kind", tag="path"):
    """An argument that names a file or folder."""

    role: Role
    argument: str
    location: Location


class UrlTarget(Value, tag_field="kind", tag="url"):
    """An argument that names a host, canonical: lower case, punycode, numeric addresses written out."""

    role: Role
    argument: str
    given: str
    scheme: str = ""
    host: str = ""
    port: int | None = None
    path: str = ""
    problem: str | None = None


class NameTarget(Value, tag_field="kind", tag="name"):
    """An argument that is an identifier: an owner, a branch, an address."""

    role: Role
    argument: str
    value: str


Target = PathTarget | UrlTarget | NameTarget
