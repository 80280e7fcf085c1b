"""The world as a toolset: executes judged `world.*` calls, directly or as staged changes.

Reads always see staged changes. Changes run to completion on the event loop, so a cancelled call was either made or not.
Only slow operations that change nothing run in a thread.
"""

import asyncio
import base64
import binascii
import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec

from holdfast.core import (
    Amount,
    Call,
    CallId,
    Change,
    Json,
    PathTarget,
    Performed,
    Target,
    Tool,
    Value,
    max_text_memory,
    outside_paths,
    text_bytes,
    text_memory,
)
from holdfast.core.errors import InvalidInput, PathRefused, ToolFailed
from holdfast.world.contract import Stat, World
from holdfast.world.folder.outside_world import OutsideWorld
from holdfast.world.paths.names import GUEST_ROOTS
from holdfast.world.staging.staged_world import StagedWorld
from holdfast.world.tools import WORLD_TOOLS

MAX_READ_BYTES = 64 << 20
"""A read returns one text, which the program receives whole. A larger file is read in pieces, with offset and length."""
READ_IN_PIECES = "read the file in pieces, with offset and length"
"""Part of the error of a read that is too large. `open` of the Python sandbox expects it, and does so."""
TAKES_MEMORY = "of memory as one text"
"""Part of the error of a read whose text is too wide. The sandboxes expect it, and read bytes."""

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
            return binascii.a2b_base64(
                self.content, strict_mode=True
            )  # unlike b64decode, without a copy of the text
        except ValueError:
            raise InvalidInput("the content is not base64") from None


class WorldToolset:
    """Executes `world.*` calls. `keep` stores staged content, so that a restart can rebuild the overlay."""

    def __init__(
        self, world: World, staged: StagedWorld, *, keep: StoreBlob, max_read_bytes: int = MAX_READ_BYTES
    ) -> None:
        """`max_read_bytes` limits the text that one read returns, which is base64 for a binary file."""
        self._max_read_bytes = max_read_bytes
        self._world = world
        self._staged = staged
        self._keep = keep
        self._outside = OutsideWorld()
        self._opened: dict[CallId, dict[str, str]] = {}
        """The paths outside the workspace that a call in flight may use: as given, and the real path."""

    def tools(self) -> tuple[Tool, ...]:
        return WORLD_TOOLS

    def max_cost(self, call: Call) -> Amount:
        """The bytes that a write or an append writes; other operations write none."""
        content = call.arguments.get("content")
        if call.operation not in ("world.write", "world.append") or not isinstance(content, str):
            return Amount()
        return Amount(bytes_written=text_bytes(content))

    async def obstacle(self, call: Call, targets: Sequence[Target], *, is_staged: bool) -> str:
        outside = outside_paths(targets)
        if outside and is_staged:
            return (
                f"{outside[0].location.real!r} is outside the workspace, and only changes inside it can be staged; "
                "write a copy inside the workspace"
            )
        if outside and len(outside) < len(targets):
            return (
                "a file cannot be moved into or out of the workspace; read it, write it at its new place, and "
                "delete the old one"
            )
        return ""

    @asynccontextmanager
    async def opened(
        self, call: Call, paths: Sequence[PathTarget], *, is_approved: bool
    ) -> AsyncIterator[None]:
        # INVARIANT: a rule alone never opens the world. Only a person's answer, a grant or --add-dir does.
        if not is_approved:
            yield
            return
        self._opened[call.id] = {path.location.given: path.location.real for path in paths}
        try:
            yield
        finally:
            del self._opened[call.id]

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        """Execute one operation."""
        try:
            arguments = msgspec.convert(call.arguments, _Arguments)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{call.operation}: {error}") from None
        if opened := self._opened.get(call.id):
            return await self._perform_outside(call.operation, arguments, opened, is_staged=is_staged)
        for path in (arguments.path, arguments.source, arguments.destination):
            if path:
                self._staged.check_followed(path)
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
                return Performed(result=await asyncio.to_thread(self._search, call.operation, arguments))
            case _:
                return Performed(result=self._inspect(call.operation, arguments, self._staged))

    async def _perform_outside(
        self, operation: str, given: _Arguments, opened: dict[str, str], *, is_staged: bool
    ) -> Performed:
        """Execute an approved operation on the real paths of the host. It is never staged, and no rewind undoes it."""
        named = {name: value for name in _PATH_ARGUMENTS if (value := getattr(given, name))}
        if is_staged or not set(named.values()) <= opened.keys():
            raise PathRefused(f"{operation} mixes paths inside and outside the workspace, or is staged")
        arguments = msgspec.structs.replace(given, **{name: opened[value] for name, value in named.items()})
        outside = self._outside
        match operation:
            case "world.write" | "world.append":
                write = outside.write if operation == "world.write" else outside.append
                write(arguments.place, arguments.body)
                body = len(arguments.body)
                return Performed(result=body, amount=Amount(bytes_written=body))
            case "world.delete":
                outside.delete(arguments.place, recursive=arguments.recursive)
            case "world.move":
                outside.move(arguments.source, arguments.destination)
            case "world.make_folder":
                outside.make_folder(arguments.place)
            case "world.fingerprint":
                return Performed(result=outside.fingerprint(arguments.place))
            case _:
                return Performed(result=self._inspect(operation, arguments, outside))
        return Performed()

    def _inspect(self, operation: str, arguments: _Arguments, world: World) -> Json:
        """Execute a quick operation that changes nothing."""
        prefix = "/" if world is self._outside else ""
        match operation:
            case "world.read":
                return _read(arguments, world, max_bytes=self._max_read_bytes)
            case "world.exists":
                return world.exists(arguments.place)
            case "world.stat":
                return _plain(world.stat(arguments.place), prefix)
            case "world.entries":
                return [_plain(each, prefix) for each in world.entries(arguments.place)]
            case _:
                raise ToolFailed(f"the world has no operation {operation!r}")

    def _search(self, operation: str, arguments: _Arguments) -> Json:
        """Execute a slow operation that changes nothing."""
        match operation:
            case "world.list":
                return list(self._staged.list(arguments.glob))
            case "world.search":
                found = self._staged.search(arguments.query, arguments.glob, limit=arguments.limit)
                return [msgspec.structs.asdict(hit) for hit in found]
            case "world.fingerprint":
                return self._staged.fingerprint(arguments.path)
            case "world.proposals":
                return [
                    {"path": each.path, "kind": each.kind, "diff": each.diff}
                    for each in self._staged.proposals()
                ]
            case _:
                raise ToolFailed(f"the world has no operation {operation!r}")

    async def _change(self, operation: str, arguments: _Arguments, *, is_staged: bool) -> Performed:
        # A file with a staged change is changed in the overlay, which would otherwise hide the new content.
        touched = (arguments.path, arguments.source, arguments.destination)
        is_overlaid = any(self._staged.has_staged(path) for path in touched if path)
        into: World = self._staged if is_staged or is_overlaid else self._world
        body = arguments.body if operation in ("world.write", "world.append") else b""
        if operation in ("world.write", "world.append") and arguments.place.endswith("/"):
            raise PathRefused(f"{arguments.path!r} names a folder", hint="name the file to write")
        # Stored before it is staged: with an await between a change and its report, a cancelled call could have made the change.
        kept = (
            [await self._keep(each) for each in self._contents(operation, arguments, body)]
            if into is self._staged
            else []
        )
        changes: tuple[Change, ...]
        written: int | None = None
        match operation:
            case "world.write":
                changes, written = (into.write(arguments.place, body),), len(body)
            case "world.append":
                changes, written = (into.append(arguments.place, body),), len(body)
            case "world.delete":
                changes = into.delete(arguments.place, recursive=arguments.recursive)
            case _:
                changes = into.move(arguments.source, arguments.destination)
        for change in changes:
            if change.is_staged and change.after is not None and change.after not in kept:
                await self._keep(self._staged.read(change.path))
        return Performed(result=written, amount=Amount(bytes_written=written or 0), changes=changes)

    def _contents(self, operation: str, arguments: _Arguments, body: bytes) -> list[bytes]:
        """The contents that a staged change will put into the overlay."""
        staged = self._staged
        match operation:
            case "world.write":
                return [body]
            case "world.append":
                is_there = staged.exists(arguments.place)
                return [(staged.read(arguments.place) if is_there else b"") + body]
            case "world.move":
                source = staged.resolve(arguments.source)
                links = (os.fsencode(staged.link_target(path) or "") for path in staged.links_in(source))
                return [*(staged.read(path) for path in staged.files_in(source)), *links]
            case _:
                return []


def _read(arguments: _Arguments, world: World, *, max_bytes: int) -> str:
    is_text = arguments.encoding != "base64"
    is_piece = arguments.offset > 0 or arguments.length is not None
    size = world.stat(arguments.place).size
    length = max(0, size - arguments.offset)
    if arguments.length is not None:
        length = min(length, arguments.length)
    limit = max_bytes if is_text else max_bytes // 4 * 3
    if length > limit:
        raise OSError(
            errno.EFBIG,
            f"a read returns at most {limit:,} bytes, and this one has {length:,}; "
            f"{READ_IN_PIECES}, or raise code.value_bytes in config.toml",
            arguments.place,
        )
    if is_piece and is_text:
        # A character that starts in the piece may end behind it.
        content = world.read(
            arguments.place, offset=arguments.offset, length=length + _MAX_CHARACTER_BYTES - 1
        )
        content = content[_character_start(content, 0) : _character_start(content, length)]
    else:
        content = world.read(arguments.place, offset=arguments.offset, length=length if is_piece else None)
    if not is_text:
        return base64.b64encode(content).decode()
    try:
        if 4 * len(content) <= max_text_memory(max_bytes):
            return content.decode()
        memory = text_memory(content)
        if memory <= max_text_memory(max_bytes):
            return content.decode()
    except UnicodeDecodeError:
        raise InvalidInput(
            f"{arguments.place!r} is not UTF-8 text", hint="read it with encoding base64"
        ) from None
    raise OSError(
        errno.EFBIG,
        f"this read takes {memory:,} bytes {TAKES_MEMORY}, because of its widest character, and one may take "
        f"{max_text_memory(max_bytes):,}; use `open` of the sandbox, {READ_IN_PIECES}, or raise code.value_bytes in config.toml",
        arguments.place,
    )


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


_PATH_ARGUMENTS = frozenset({"path", "source", "destination"})


def _plain(found: Stat, prefix: str) -> Json:
    """What is at a path as JSON, with every field."""
    return msgspec.structs.asdict(found) | {"path": prefix + found.path}
