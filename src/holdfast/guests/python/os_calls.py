"""Handles the operating system calls of guest code: files, clock, randomness, environment.

File operations become `world.*` calls, so each of them reaches the gate. Clock and randomness come from the request, so a second
run of the same code behaves the same. The environment is empty.
"""

import base64
import datetime
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath
from typing import Any

import pydantic_monty as monty

from holdfast.core import Json, JsonObject
from holdfast.guests.contract import RunRequest
from holdfast.guests.python.file_calls import CallHost, FileCalls
from holdfast.guests.python.host_calls import GuestException
from holdfast.guests.python.state import RunProgress

Sleep = Callable[[float], Awaitable[None]]
_MAX_RANDOM_BYTES = 1 << 20
_SECOND_MS = 1000


class OsCalls:
    """Handles the operating system calls of one run."""

    def __init__(
        self, request: RunRequest, progress: RunProgress, *, files: FileCalls, call: CallHost, sleep: Sleep
    ) -> None:
        self._request = request
        self._files = files
        self._progress = progress
        self._call = call
        self._sleep = sleep

    async def handle(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call. Raises GuestException, or NotImplementedError for a call that is not supported."""
        match name:
            case "time.time":
                return self._now_ms() / _SECOND_MS
            case "datetime.now":
                return self._datetime(args[0] if args else None)
            case "date.today":
                return self._datetime(None).date()
            case "os.urandom":
                return self._random(args[0])
            case "os.getenv":
                return _default(args[1] if len(args) > 1 else None)
            case "os.environ":
                return {}
            case "time.sleep" | "asyncio.sleep" | "system.sleep" | "system.async_sleep":
                await self._sleep(float(args[0]))
                self._progress.slept_ms += round(float(args[0]) * _SECOND_MS)
                return None
            case "Path.resolve" | "Path.absolute":
                return str(args[0])
            case "Path.is_symlink":
                return False
            case "Path.append_text" | "Path.append_bytes":
                await self._files.append_natively(_path(args[0]), args[1])
                return len(args[1])
        for each in args[:2] if name == "Path.rename" else args[:1]:
            await self._files.write_before_touching(_path(each))
        return await self._file(name, args, kwargs)

    async def _file(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        path = _path(args[0])
        match name:
            case "open":
                return await self._open(path, args[1])
            case "Path.read_text":
                return await self._files.read_text(path)
            case "Path.read_bytes":
                return await self._files.read(path)
            case "Path.write_text" | "Path.write_bytes":
                await self._call("world.write", {"path": path, **_content(args[1])})
                return len(args[1])
            case "Path.exists":
                return bool(await self._call("world.exists", {"path": path}))
            case "Path.is_file":
                return await self._kind(path) == "file"
            case "Path.is_dir":
                return await self._kind(path) == "folder"
            case "Path.stat":
                return _stat(await self._call("world.stat", {"path": path}))
            case "Path.iterdir":
                return [f"{path.rstrip('/')}/{name}" for name, _ in await self._entries(path)]
            case "Path.scan":
                return await self._scan(path, kwargs.get("max_depth"))
            case "Path.mkdir":
                if not kwargs.get("exist_ok") and await self._call("world.exists", {"path": path}):
                    raise GuestException("FileExistsError", f"[Errno 17] File exists: {path!r}")
                return await self._call("world.make_folder", {"path": path})
            case "Path.unlink" | "Path.rmdir":
                return await self._call("world.delete", {"path": path})
            case "Path.rename":
                return await self._call("world.move", {"source": path, "destination": _path(args[1])})
            case _:
                raise NotImplementedError(name)

    async def _open(self, path: str, mode: str) -> monty.MontyFileHandle:
        handle = monty.MontyFileHandle(path, mode)
        if "w" in mode:
            self._files.open_natively(path)
        elif "a" not in mode and await self._kind(path, is_required=True) == "folder":
            raise GuestException("IsADirectoryError", f"[Errno 21] Is a directory: {path!r}")
        return handle

    async def _kind(self, path: str, *, is_required: bool = False) -> Json:
        try:
            stat = await self._call("world.stat", {"path": path})
        except GuestException as error:
            if error.kind == "FileNotFoundError" and not is_required:
                return None
            raise
        return stat.get("kind") if isinstance(stat, dict) else None

    async def _entries(self, path: str) -> list[tuple[str, bool]]:
        """The names in a folder, and whether each is a folder."""
        entries = await self._call("world.entries", {"path": path})
        if not isinstance(entries, list):
            return []
        return [
            (str(entry["path"]).rpartition("/")[2], entry.get("kind") == "folder")
            for entry in entries
            if isinstance(entry, dict)
        ]

    async def _scan(self, path: str, max_depth: int | None) -> list[monty.ScanEntry]:
        """A folder and its contents, in one call at any depth. Folders without files are found only at the first level."""
        found = {"": True}
        if max_depth == 1:
            found.update(await self._entries(path))
        else:
            base = PurePosixPath(path)
            files = await self._call("world.list", {"pattern": "**/*"})
            for file in files if isinstance(files, list) else []:
                full = PurePosixPath("/workspace") / str(file)
                if not full.is_relative_to(base):
                    continue
                relative = full.relative_to(base)
                parents = [parent for parent in relative.parents if parent != PurePosixPath()]
                found.update({str(parent): True for parent in parents})
                found[str(relative)] = False
        return [monty.ScanEntry(name, is_folder, not is_folder, False) for name, is_folder in found.items()]

    def _now_ms(self) -> int:
        return self._request.now_ms + self._progress.slept_ms

    def _datetime(self, zone: datetime.tzinfo | None) -> datetime.datetime:
        now = datetime.datetime.fromtimestamp(self._now_ms() / _SECOND_MS, zone or datetime.UTC)
        return now if zone else now.replace(tzinfo=None)

    def _random(self, count: int) -> bytes:
        if count > _MAX_RANDOM_BYTES:
            raise GuestException("ValueError", f"at most {_MAX_RANDOM_BYTES} random bytes at once")
        self._progress.draws += 1
        return hashlib.shake_256(f"{self._request.seed}:{self._progress.draws}".encode()).digest(count)


def _default(value: Any) -> str | None:
    """The default of an unset variable. Only text is returned: a list may share one text a million times."""
    if value is None or isinstance(value, str):
        return value
    raise GuestException("TypeError", "the default of os.getenv must be a string or None here")


def _path(value: Any) -> str:
    return value.path if isinstance(value, monty.MontyFileHandle) else str(value)


def _content(value: str | bytes) -> JsonObject:
    if isinstance(value, bytes):
        return {"content": base64.b64encode(value).decode(), "encoding": "base64"}
    return {"content": value}


def _stat(value: Json) -> monty.StatResult:
    facts = value if isinstance(value, dict) else {}
    modified = float(_number(facts.get("modified_ms"))) / _SECOND_MS
    mode = int(_number(facts.get("mode")))
    if facts.get("kind") == "folder":
        return monty.StatResult.dir_stat(mode or 0o755, modified)
    return monty.StatResult.file_stat(int(_number(facts.get("size"))), mode or 0o644, modified)


def _number(value: Json) -> float:
    return value if isinstance(value, (int, float)) else 0
