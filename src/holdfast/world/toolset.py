"""The world as a toolset: calls that were judged become operations on files, made at once or staged.

Reads always see what is staged. Changes run to their end on the event loop, so that a cancelled call was either made or
not; only what may take long and changes nothing is given to a thread.
"""

import asyncio
import base64
import binascii
import errno
from collections.abc import Awaitable, Callable

import msgspec

from holdfast.core import Amount, Call, Change, Json, Performed, Tool, Value
from holdfast.core.errors import InvalidInput, ToolFailed
from holdfast.world.contract import World
from holdfast.world.paths.names import GUEST_ROOTS
from holdfast.world.search import search_files
from holdfast.world.staging.staged_world import StagedWorld
from holdfast.world.tools import WORLD_TOOLS

MAX_READ_BYTES = 32 << 20
"""A read answers with one value that goes through the journal; larger files are for code that has the folder."""

Keep = Callable[[bytes], Awaitable[str]]
"""Stores a blob and answers with its SHA-256."""


class _Arguments(Value, forbid_unknown_fields=True):
    """The arguments of every operation; which of them belong to which stands in `tools`."""

    path: str | None = None
    content: str | None = None
    encoding: str = "utf-8"
    pattern: str = "**/*"
    recursive: bool = False
    source: str = ""
    destination: str = ""
    query: str = ""
    limit: int = 1000
    paths: list[str] | None = None

    @property
    def place(self) -> str:
        """The path; one that was not given is empty, and so refused by the world."""
        return self.path or ""

    @property
    def glob(self) -> str:
        """The pattern relative to the workspace."""
        for root in GUEST_ROOTS:
            if self.pattern.startswith(f"{root}/"):
                return self.pattern[len(root) + 1 :]
        return self.pattern

    @property
    def body(self) -> bytes:
        """The content as bytes. Raises InvalidInput."""
        if self.content is None:
            raise InvalidInput("the content is missing")
        if self.encoding == "utf-8":
            return self.content.encode("utf-8", "surrogatepass")
        try:
            return base64.b64decode(self.content, validate=True)
        except binascii.Error:
            raise InvalidInput("the content is not base64") from None


class WorldToolset:
    """Carries out `world.*`. `keep` stores staged content, so that a restart can build the overlay again.

    `may_read` says of a path whether the policy lets it be read: listings and searches name many files at once, and what
    may not be read alone must not come out among others.
    """

    def __init__(
        self,
        world: World,
        staged: StagedWorld,
        *,
        keep: Keep,
        may_read: Callable[[str], bool] = lambda path: True,
    ) -> None:
        self._world = world
        self._staged = staged
        self._keep = keep
        self._may_read = may_read

    def tools(self) -> tuple[Tool, ...]:
        return WORLD_TOOLS

    def max_cost(self, call: Call) -> Amount:
        """What a write puts on the disk; the other operations write nothing new."""
        content = call.arguments.get("content")
        if call.operation not in ("world.write", "world.append") or not isinstance(content, str):
            return Amount()
        return Amount(bytes_written=len(content.encode("utf-8", "surrogatepass")))

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        """Carry out one operation."""
        try:
            arguments = msgspec.convert(call.arguments, _Arguments)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{call.operation}: {error}") from None
        match call.operation:
            case "world.write" | "world.append" | "world.delete" | "world.move":
                return await self._change(call.operation, arguments, is_staged=is_staged)
            case "world.make_folder":
                (self._staged if is_staged else self._world).make_folder(arguments.place)
                return Performed()
            case "world.withdraw":
                withdrawn = self._staged.withdraw(arguments.paths)
                return Performed(result=[change.path for change in withdrawn], changes=withdrawn)
            case "world.list" | "world.search" | "world.fingerprint" | "world.proposals":
                return Performed(result=await asyncio.to_thread(self._look, call.operation, arguments))
            case _:
                return Performed(result=self._look(call.operation, arguments))

    def _look(self, operation: str, arguments: _Arguments) -> Json:
        """What changes nothing."""
        match operation:
            case "world.read":
                return self._read(arguments)
            case "world.exists":
                return self._staged.exists(arguments.place)
            case "world.stat":
                return _plain(self._staged.stat(arguments.place))
            case "world.entries":
                entries = self._staged.entries(arguments.place)
                return _plain(tuple(each for each in entries if self._may_read(each.path)))
            case "world.list":
                return list(self._readable(arguments.glob))
            case "world.search":
                paths = self._readable(arguments.glob)
                return _plain(search_files(paths, self._staged.read, arguments.query, limit=arguments.limit))
            case "world.fingerprint":
                return self._staged.fingerprint(arguments.path)
            case "world.proposals":
                return [
                    {"path": each.path, "kind": each.kind, "diff": each.diff}
                    for each in self._staged.proposals()
                    if self._may_read(each.path)
                ]
            case _:
                raise ToolFailed(f"the world has no operation {operation!r}")

    def _readable(self, pattern: str) -> tuple[str, ...]:
        return tuple(path for path in self._staged.list(pattern) if self._may_read(path))

    def _read(self, arguments: _Arguments) -> str:
        if self._staged.stat(arguments.place).size > MAX_READ_BYTES:
            raise OSError(errno.EFBIG, f"a file to read has at most {MAX_READ_BYTES} bytes", arguments.place)
        content = self._staged.read(arguments.place)
        if arguments.encoding == "base64":
            return base64.b64encode(content).decode()
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise InvalidInput(
                f"{arguments.place!r} is no UTF-8 text", hint="read it with encoding base64"
            ) from None

    async def _change(self, operation: str, arguments: _Arguments, *, is_staged: bool) -> Performed:
        # A file that has a staged change is changed there: made at once, the new content would hide under the old.
        touched = (arguments.path, arguments.source, arguments.destination)
        is_overlaid = any(self._staged.has_staged(path) for path in touched if path)
        into: World = self._staged if is_staged or is_overlaid else self._world
        # Kept before it is staged: no await may come between a change and its report, or a cancelled call has made it.
        kept = (
            [await self._keep(each) for each in self._contents(operation, arguments)]
            if into is self._staged
            else []
        )
        changes: tuple[Change, ...]
        written: int | None = None
        match operation:
            case "world.write":
                changes, written = (into.write(arguments.place, arguments.body),), len(arguments.body)
            case "world.append":
                changes, written = (into.append(arguments.place, arguments.body),), len(arguments.body)
            case "world.delete":
                changes = into.delete(arguments.place, recursive=arguments.recursive)
            case _:
                changes = into.move(arguments.source, arguments.destination)
        for change in changes:
            if change.is_staged and change.after is not None and change.after not in kept:
                await self._keep(self._staged.read(change.path))
        return Performed(result=written, amount=Amount(bytes_written=written or 0), changes=changes)

    def _contents(self, operation: str, arguments: _Arguments) -> list[bytes]:
        """What a staged change is about to put into the overlay."""
        staged = self._staged
        match operation:
            case "world.write":
                return [arguments.body]
            case "world.append":
                is_there = staged.exists(arguments.place)
                return [(staged.read(arguments.place) if is_there else b"") + arguments.body]
            case "world.move":
                return [staged.read(path) for path in staged.files_in(staged.resolve(arguments.source))]
            case _:
                return []


def _plain(value: Value | tuple[Value, ...]) -> Json:
    """A value as the guest sees it, every field included."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return msgspec.structs.asdict(value)
