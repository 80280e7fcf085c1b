"""The world as a toolset: executes judged `world.*` calls, directly or as staged changes.

Reads always see staged changes. Changes run to completion on the event loop, so a cancelled call was either made or not.
Only slow operations that change nothing run in a thread.
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
from holdfast.world.staging.staged_world import StagedWorld
from holdfast.world.tools import WORLD_TOOLS

MAX_READ_BYTES = 128 << 20
"""A read returns one value, which the program receives whole. A larger file is read in pieces, with offset and length."""

StoreBlob = Callable[[bytes], Awaitable[str]]
"""Stores a blob and returns its SHA-256."""


class _Arguments(Value, forbid_unknown_fields=True):
    """The arguments of all operations; `tools` defines which operation takes which."""

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
    offset: int = 0
    length: int | None = None

    @property
    def place(self) -> str:
        """The path, or an empty one, which the world refuses."""
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
    """Executes `world.*` calls. `keep` stores staged content, so that a restart can rebuild the overlay."""

    def __init__(self, world: World, staged: StagedWorld, *, keep: StoreBlob) -> None:
        self._world = world
        self._staged = staged
        self._keep = keep

    def tools(self) -> tuple[Tool, ...]:
        return WORLD_TOOLS

    def max_cost(self, call: Call) -> Amount:
        """The bytes that a write or an append writes; other operations write none."""
        content = call.arguments.get("content")
        if call.operation not in ("world.write", "world.append") or not isinstance(content, str):
            return Amount()
        return Amount(bytes_written=len(content.encode("utf-8", "surrogatepass")))

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        """Execute one operation."""
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
                return Performed(result=await asyncio.to_thread(self._inspect, call.operation, arguments))
            case _:
                return Performed(result=self._inspect(call.operation, arguments))

    def _inspect(self, operation: str, arguments: _Arguments) -> Json:
        """Execute an operation that changes nothing."""
        match operation:
            case "world.read":
                return self._read(arguments)
            case "world.exists":
                return self._staged.exists(arguments.place)
            case "world.stat":
                return _plain(self._staged.stat(arguments.place))
            case "world.entries":
                return _plain(self._staged.entries(arguments.place))
            case "world.list":
                return list(self._staged.list(arguments.glob))
            case "world.search":
                return _plain(self._staged.search(arguments.query, arguments.glob, limit=arguments.limit))
            case "world.fingerprint":
                return self._staged.fingerprint(arguments.path)
            case "world.proposals":
                return [
                    {"path": each.path, "kind": each.kind, "diff": each.diff}
                    for each in self._staged.proposals()
                ]
            case _:
                raise ToolFailed(f"the world has no operation {operation!r}")

    def _read(self, arguments: _Arguments) -> str:
        is_text = arguments.encoding != "base64"
        is_piece = arguments.offset > 0 or arguments.length is not None
        size = self._staged.stat(arguments.place).size
        length = max(0, size - arguments.offset)
        if arguments.length is not None:
            length = min(length, arguments.length)
        if length > MAX_READ_BYTES:
            raise OSError(
                errno.EFBIG,
                f"a read returns at most {MAX_READ_BYTES:,} bytes, and this one has {length:,}; "
                "read the file in pieces, with offset and length",
                arguments.place,
            )
        content = self._staged.read(arguments.place)
        if is_piece:
            start = arguments.offset
            end = len(content) if arguments.length is None else start + arguments.length
            if is_text:
                start, end = _character_start(content, start), _character_start(content, end)
            content = content[start:end]
        if not is_text:
            return base64.b64encode(content).decode()
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise InvalidInput(
                f"{arguments.place!r} is not UTF-8 text", hint="read it with encoding base64"
            ) from None

    async def _change(self, operation: str, arguments: _Arguments, *, is_staged: bool) -> Performed:
        # A file with a staged change is changed in the overlay, which would otherwise hide the new content.
        touched = (arguments.path, arguments.source, arguments.destination)
        is_overlaid = any(self._staged.has_staged(path) for path in touched if path)
        into: World = self._staged if is_staged or is_overlaid else self._world
        # Stored before it is staged: with an await between a change and its report, a cancelled call could have made the change.
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
        """The contents that a staged change will put into the overlay."""
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


def _character_start(content: bytes, offset: int) -> int:
    """The offset of the first character that starts at or after an offset.

    A piece of text has the characters that start in it, so consecutive pieces join to the whole text.
    """
    limit = min(len(content), offset + _MAX_CHARACTER_BYTES - 1)
    while offset < limit and content[offset] & 0b1100_0000 == 0b1000_0000:
        offset += 1
    return offset


_MAX_CHARACTER_BYTES = 4
"""In UTF-8."""


def _plain(value: Value | tuple[Value, ...]) -> Json:
    """A value as JSON, with every field."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return msgspec.structs.asdict(value)
