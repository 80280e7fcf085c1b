"""Targets: what the arguments of a call refer to, resolved. Policies judge targets, never raw strings.

Resolving a path reads the disk and judging must not, so the gate resolves first and passes the targets to the policy.
"""

import shlex
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from holdfast.core.calls import Call
from holdfast.core.tools import Role
from holdfast.core.values import Value


class Location(Value):
    """Where a path leads. If it cannot be resolved, `problem` says why, and the path must not be used."""

    given: str
    real: str = ""
    """The absolute path on the host, with all symlinks resolved."""
    inside: str | None = None
    """The normalised path relative to the workspace; None if it is outside. The workspace itself is `.`."""
    protected: str | None = None
    """The protection that covers the path; a protected path is denied, whatever the policy says."""
    problem: str | None = None
    read_only: str | None = None
    """The git repository that the path is part of; a change of it is denied, whatever the policy says."""


class Paths(Protocol):
    """Resolves paths. The world implements it."""

    def locate(self, given: str) -> Location:
        """Resolve a path that a guest gave. Never raises, even on hostile input."""
        ...

    def locate_name(self, given: str) -> Location:
        """Resolve a path whose last name is meant itself, even if it is a symlink. Never raises."""
        ...

    def closed_below(self, location: Location) -> str | None:
        """What is closed to changes inside a folder, such as a git repository; None if nothing is. Walks the folder, so call it
        in a thread. Never raises."""
        ...

    def locate_all(self, given: Sequence[str]) -> list[Location]:
        """Resolve many paths, such as those of a listing."""
        ...


class PathTarget(Value, tag_field="kind", tag="path"):
    """An argument that names a file or folder."""

    role: Role
    argument: str
    location: Location


class UrlTarget(Value, tag_field="kind", tag="url"):
    """An argument that names a host, in canonical form: lower case, punycode, numeric addresses written out."""

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


class CommandTarget(Value, tag_field="kind", tag="command"):
    """A command that an argument runs: an argument list, or one simple command of a script.

    If `is_opaque`, what runs is not certain, and `words` are all words of the text, split at every operator.
    """

    role: Role
    argument: str
    words: tuple[str, ...]
    reads: tuple[str, ...] = ()
    """The files that its redirections read."""
    writes: tuple[str, ...] = ()
    """The files that its redirections write."""
    appends: tuple[str, ...] = ()
    """Those of `writes` that keep what is in the file."""
    is_opaque: bool = False
    digest: str = ""
    """Digest of the text of an opaque command, so that two of them are equal only if their texts are."""
    sets_environment: bool = False
    """Whether the call sets environment variables, which can change what a program name stands for."""

    @property
    def text(self) -> str:
        """The command as a shell would take it."""
        files = [("<", name) for name in self.reads]
        files += [(">>" if name in self.appends else ">", name) for name in self.writes]
        return " ".join([shlex.join(self.words), *(f"{way} {shlex.quote(name)}" for way, name in files)])


Target = PathTarget | UrlTarget | NameTarget | CommandTarget


def outside_paths(targets: Sequence[Target]) -> tuple[PathTarget, ...]:
    """The targets that are paths outside the workspace."""
    return tuple(
        target for target in targets if isinstance(target, PathTarget) and target.location.inside is None
    )


@runtime_checkable
class ObstacleFinder(Protocol):
    """A toolset that knows which of its calls cannot work, so that nobody is asked about them."""

    async def obstacle(self, call: Call, targets: Sequence[Target], *, is_staged: bool) -> str:
        """Why this call cannot work even if it is approved, with the way out; empty if it can."""
        ...


@runtime_checkable
class ApprovedPaths(Protocol):
    """A toolset that reaches a path outside the workspace only if the gate has approved it for this call."""

    def opened(
        self, call: Call, paths: Sequence[PathTarget], *, is_approved: bool
    ) -> AbstractAsyncContextManager[None]:
        """Open these paths outside the workspace for one call, until the block exits.

        `is_approved` if a person approved them; otherwise a rule allows the call.
        """
        ...
