"""What files of guest code ask of the host: to open, write and encode, and to write what was held back.

A file is written with one `world.write` or `world.append` when it is closed or flushed, or when the run ends without an error. Before
code looks at files, it shows the host what its open files hold (`file_insertions`). The host holds this back, and writes it before
anything that could see the file: an operation on its path, a tool whose arguments name it, and a tool that runs programs. What
`open(path, "w").write(text)` wrote and nobody closes is complete if nothing follows, so any tool sees it.
"""

import base64
import codecs
import posixpath
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from holdfast.core import Json, JsonObject
from holdfast.guests.python.host_calls import GuestException
from holdfast.guests.python.state import HeldFile, RunProgress

CallHost = Callable[[str, JsonObject], Awaitable[Json]]
"""Makes a call. Returns its value; raises GuestException if it was refused or failed."""

_UTF_8 = ("utf-8", "utf8")
_PIECE_BYTES = 4 << 20
_TOO_LARGE = "in pieces, with offset and length"
"""What `world.read` says of a file that is larger than one read returns."""
_TOO_WIDE = "of memory as one text"
"""What it says of a text that takes more memory in Python than a call may carry. The guest, where it takes less, decodes it."""
_PROGRAMS = "shell."
"""The tools that run programs, which may see any file."""
_NOT_UTF8 = "is not UTF-8 text"
_WITHOUT_MARK = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
"""How text is encoded that follows other text: the byte order mark is only at the start of a file."""
_UNSUPPORTED_CODECS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined"})
"""They take more than linear time or do not encode files."""


class FileCalls:
    """Answers the file objects of one run."""

    def __init__(self, progress: RunProgress, *, call: CallHost, value_bytes: int) -> None:
        self._piece_bytes = min(_PIECE_BYTES, value_bytes // 4 * 3)  # a piece travels as base64
        self._progress = progress
        self._call = call

    async def handle(self, args: list[Any]) -> Any:
        """The result of an operation of the file prelude. Raises GuestException. Takes large content out of `args`."""
        match args:
            case (
                "open" | "open to decode" as operation,
                int(id),
                str(path),
                str(kind),
                bool(can_read),
                bool(can_write),
                codec,
                str(errors),
            ):
                # Versions of the prelude before 6 do not decode.
                can_decode = operation == "open to decode"
                return await self._open(id, path, kind, can_read, can_write, codec, errors, can_decode)
            case ("show", int(), str(), bool(), bool(), _, _, str(), bool()):
                return await self._show(args)
            case ("hold", int(id)):
                return self._hold(id, None, None, "")
            case ("hold", int(id), content, codec, str(errors)):
                # Files that version 3 of the prelude opened show their first write so.
                return self._hold(id, content, codec, errors)
            case ("write", int(), str(), bool(), _, _, str(), bool()):
                return await self._write(args)
            case ("size", int(id), str(path)):
                return await self._size(path) - self._written_early(id)
            case ("piece" | "next piece" as operation, str(path), int(offset), codec, str(errors)):
                answer = await self._piece(path, offset, codec, errors)
                # Files that version 1 of the prelude opened do not ask whether the piece is the last.
                return answer if operation == "next piece" else answer[:2]
            case ("check", str(text), str(codec), str(errors)):
                _encode(text, codec, errors)
                return None
            case ("unsupported", str(message)):
                raise GuestException("io.UnsupportedOperation", message)
            case _:
                raise GuestException("TypeError", "files are opened with open()")

    async def read(self, path: str) -> bytes:
        """The bytes of a file."""
        content = await self._call("world.read", {"path": path, "encoding": "base64"})
        return base64.b64decode(str(content))

    async def read_text(self, path: str) -> str:
        """The text of a file in UTF-8, with line feeds as its line ends. Raises GuestException."""
        text, problem = await self._content(path, _UTF_8[0], "strict")
        if problem:
            raise GuestException("UnicodeDecodeError", problem)
        return str(text).replace("\r\n", "\n").replace("\r", "\n")

    def open_natively(self, path: str) -> None:
        """Hold back the content of a file that `Path.open` opened for writing. Its object does not say when it is closed."""
        self._progress.held.append(HeldFile(path=path, operation="world.write", parts=[], when="tool"))

    async def append_natively(self, path: str, content: str | bytes) -> None:
        """Add to the content of a file that `Path.open` opened."""
        held = next((each for each in self._progress.held if not each.id and each.path == path), None)
        if held is None:
            await self.write_before_touching(path)
            held = HeldFile(path=path, operation="world.append", parts=[], when="tool")
            self._progress.held.append(held)
        if isinstance(content, bytes) and held.is_text:
            at = self._progress.held.index(held)
            held = self._progress.held[at] = msgspec.structs.replace(held, is_text=False)
        held.parts.append(_to_bytes(content))

    async def write_before_touching(self, path: str) -> None:
        """Write held content of a file, or of files in a folder, before a file operation on that path."""
        touched = posixpath.normpath(path)
        await self._write_held(
            lambda held: held.when == "any" or _is_within(posixpath.normpath(held.path), touched)
        )

    async def _write_ended(self, path: str) -> None:
        """Write held content before another file object writes the same file. What is still open is written when it is closed."""
        await self._write_held(lambda held: held.when == "any" or (not held.id and held.path == path))

    async def write_before_tool(self, tool: str, arguments: JsonObject) -> None:
        """Write held content that a tool may see."""

        def should(held: HeldFile) -> bool:
            if held.when == "name":
                name = re.escape(posixpath.basename(held.path))
                return tool.startswith(_PROGRAMS) or _has_text(arguments, re.compile(rf"(?<!\w){name}(?!\w)"))
            return held.when in ("tool", "any")

        if self._progress.held:
            await self._write_held(should)

    async def write_all(self) -> None:
        """Write all held content at the end of a run."""
        await self._write_held(lambda _: True)

    def unwritten(self) -> list[str]:
        """The files whose content is held back."""
        return [
            held.path
            for held in self._progress.held
            if held.when != "never" and (held.more or not held.is_written)
        ]

    async def _write_held(self, should: Callable[[HeldFile], bool]) -> None:
        for held in list(self._progress.held):
            content = held.unwritten
            if held.when == "never" or (held.is_written and not content) or not should(held):
                continue
            at = self._progress.held.index(held)
            if held.when != "any" and held.id:
                kept = [*held.parts, *held.more]
                self._progress.held[at] = msgspec.structs.replace(held, parts=kept, more=[], is_written=True)
            else:
                self._progress.held.pop(at)
            operation = "world.append" if held.is_written else held.operation
            await self._call(operation, {"path": held.path, **_arguments(content, is_text=held.is_text)})

    async def _open(
        self,
        id: int,
        path: str,
        kind: str,
        can_read: bool,
        can_write: bool,
        codec: str | None,
        errors: str,
        can_decode: bool,
    ) -> list[Any]:
        """Content, what is wrong with it, and whether the file exists. A file that is only written has no content."""
        if codec is not None:
            _check_codec(codec, errors)
        await self.write_before_touching(path)
        content: str | bytes | None = None
        problem, exists = "", False
        if kind == "x" and await self._call("world.exists", {"path": path}):
            raise GuestException("FileExistsError", f"[Errno 17] File exists: {path!r}")
        if kind == "r" or (kind == "a" and can_read):
            try:
                content, problem = await self._content(path, codec, errors, can_decode=can_decode)
                exists = True
            except GuestException as error:
                if kind == "r" and not can_write and _TOO_LARGE in error.message:
                    return [None, "", True]
                if kind == "r" or error.kind != "FileNotFoundError":
                    raise
                content = b"" if codec is None else ""
        if kind != "r":
            self._progress.has_opened = True
        if kind in ("w", "x"):
            self._progress.held.append(
                HeldFile(id=id, path=path, operation="world.write", parts=[], when="touch")
            )
        elif kind == "a":
            self._progress.held.append(
                HeldFile(id=id, path=path, operation="world.append", parts=[], when="never")
            )
        elif can_write:
            self._progress.has_opened = True
        return [content, problem, exists]

    async def _content(
        self, path: str, codec: str | None, errors: str, *, can_decode: bool = False
    ) -> tuple[str | bytes, str]:
        if codec is None:
            return await self.read(path), ""
        if codec in _UTF_8:
            # As text, it is readable in the journal and for the person who approves the call.
            try:
                return str(await self._call("world.read", {"path": path})), ""
            except GuestException as error:
                if _TOO_WIDE in error.message and can_decode:
                    return await self.read(path), ""
                if _NOT_UTF8 not in error.message:
                    raise
        content = await self.read(path)
        try:
            text = content.decode(codec, errors)
        except UnicodeDecodeError as error:
            # Text of the same size, so that positions in the file are right.
            return "\0" * len(content), str(error)
        except LookupError as error:
            raise GuestException("LookupError", str(error)) from None
        return text, ""

    async def _piece(self, path: str, offset: int, codec: str | None, errors: str) -> list[Any]:
        """The next piece of a file that is too large for one read, how many bytes it takes, and whether it is the last."""
        arguments: JsonObject = {
            "path": path,
            "encoding": "base64",
            "offset": offset,
            "length": self._piece_bytes,
        }
        content = base64.b64decode(str(await self._call("world.read", arguments)))
        is_last = len(content) < self._piece_bytes
        if codec is None:
            return [content, len(content), is_last]
        if codec in _WITHOUT_MARK:
            raise GuestException(
                "OSError", f"{path!r} is too large to read with encoding {codec!r}; open it with 'rb'"
            )
        decoder = codecs.getincrementaldecoder(codec)(errors)
        try:
            text = decoder.decode(content, is_last)
        except UnicodeDecodeError as error:
            raise GuestException("UnicodeDecodeError", str(error)) from None
        count = len(content) - len(decoder.getstate()[0])
        if text.endswith("\r") and not is_last:
            text, count = text[:-1], count - 1  # a line feed may follow
        return [text, count, is_last]

    def _hold(self, id: int, content: str | bytes | None, codec: str | None, errors: str) -> None:
        """Hold the content of the only write so far, or nothing after another one."""
        for at, held in enumerate(self._progress.held):
            if held.id != id or held.is_written:
                continue
            is_append = held.operation == "world.append"
            changed: dict[str, Any]
            if content is None:  # another write followed
                changed = {"parts": [], "more": [], "when": "never" if is_append else "touch"}
            elif is_append and codec in _WITHOUT_MARK:
                return
            else:
                encoded, is_text = _encode(content, codec, errors)
                changed = {"parts": [encoded], "is_text": is_text, "when": "tool"}
            self._progress.held[at] = msgspec.structs.replace(held, **changed)

    async def _show(self, args: list[Any]) -> None:
        """Hold what an open file holds: all of it, or what follows what was held already."""
        id, path, is_whole, is_all, content, codec, errors, is_single = args[1:]
        args.clear()
        if not is_whole and codec in _WITHOUT_MARK and await self._size(path):
            codec = _WITHOUT_MARK[codec]
        encoded, is_text = _encode(content, codec, errors)
        at = next((at for at, held in enumerate(self._progress.held) if held.id == id), None)
        held = HeldFile(id=id, path=path, parts=[]) if at is None else self._progress.held[at]
        parts, more, is_written = held.parts, [*held.more, encoded], held.is_written
        if is_all:
            before = b"".join(held.parts)
            if is_written and encoded.startswith(before):
                more = [encoded[len(before) :]]
            else:
                parts, more, is_written = [encoded], [], False
        changed = msgspec.structs.replace(
            held,
            operation="world.write" if is_whole else "world.append",
            parts=parts,
            more=more,
            is_written=is_written,
            is_text=is_text and (is_all or held.is_text),
            when="tool" if is_single else "name",
        )
        if at is None:
            self._progress.held.append(changed)
        else:
            self._progress.held[at] = changed

    async def _write(self, args: list[Any]) -> None:
        """Write the content of a file that is closed or flushed, or hold it back."""
        id, path, is_whole, content, codec, errors, is_kept = args[1:]
        args.clear()  # nothing else holds the content, which is freed as soon as the call carries it
        if not is_whole and codec in _WITHOUT_MARK and await self._size(path):
            codec = _WITHOUT_MARK[codec]
        operation = "world.write" if is_whole else "world.append"
        held = next((each for each in self._progress.held if each.id == id), None)
        if held is not None:
            self._progress.held.remove(held)
        is_written = held is not None and held.is_written
        if isinstance(content, str) and content and codec in _UTF_8 and not is_written and not is_kept:
            await self._write_ended(path)
            await self._call(operation, {"path": path, "content": content})
            return
        encoded, is_text = _encode(content, codec, errors)
        if held is not None and is_written:
            before = b"".join(held.parts)
            if encoded.startswith(before):
                operation, encoded = "world.append", encoded[len(before) :]
                if not encoded:
                    return
        elif not encoded and not is_whole and await self._call("world.exists", {"path": path}):
            return
        if is_kept:
            self._progress.held.append(
                HeldFile(id=id, path=path, operation=operation, parts=[encoded], is_text=is_text, when="any")
            )
            return
        await self._write_ended(path)
        arguments = _arguments(encoded, is_text=is_text)
        del content, encoded
        await self._call(operation, {"path": path, **arguments})

    def _written_early(self, id: int) -> int:
        return sum(
            len(part)
            for held in self._progress.held
            if held.id == id and held.is_written
            for part in held.parts
        )

    async def _size(self, path: str) -> int:
        try:
            facts = await self._call("world.stat", {"path": path})
        except GuestException as error:
            if error.kind == "FileNotFoundError":
                return 0
            raise
        size = facts.get("size") if isinstance(facts, dict) else 0
        return size if isinstance(size, int) else 0


def _has_text(value: Json, text: re.Pattern[str]) -> bool:
    """Whether the arguments of a call contain a text."""
    if isinstance(value, str):
        return text.search(value) is not None
    if isinstance(value, dict):
        return any(_has_text(each, text) for each in value.values())
    return isinstance(value, list) and any(_has_text(each, text) for each in value)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _check_codec(codec: str, errors: str) -> None:
    try:
        found = codecs.lookup(codec)
    except (LookupError, ValueError):
        raise GuestException("LookupError", f"unknown encoding: {codec}") from None
    if not found._is_text_encoding:
        message = f"{codec!r} is not a text encoding; use codecs.open() to handle arbitrary codecs"
        raise GuestException("LookupError", message)
    if found.name.replace("_", "-") in _UNSUPPORTED_CODECS:
        raise GuestException("LookupError", f"this sandbox does not open files with encoding {codec!r}")
    if errors in ("surrogatepass", "surrogateescape"):
        raise GuestException(
            "LookupError",
            f"this sandbox does not open files with errors={errors!r}; its text has no surrogates",
        )


def _encode(content: str | bytes, codec: str | None, errors: str) -> tuple[bytes, bool]:
    """The bytes of a file, and whether a call shows them as text, so that the person who approves it can read them."""
    if isinstance(content, bytes) or codec is None:
        return _to_bytes(content), False
    if codec in _UTF_8:
        return content.encode(), True
    _check_codec(codec, errors)
    try:
        encoded = content.encode(codec, errors)
    except UnicodeEncodeError as error:
        raise GuestException("UnicodeEncodeError", str(error)) from None
    except LookupError as error:
        raise GuestException("LookupError", str(error)) from None
    return encoded, encoded.isascii()


def _to_bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _arguments(content: bytes, *, is_text: bool) -> JsonObject:
    if is_text:
        return {"content": content.decode()}
    return {"content": base64.b64encode(content).decode(), "encoding": "base64"}
