"""Large blobs as objects: in a folder, in a bucket of an S3-compatible service, or in memory, through obstore.

An object has the name of its tenant and its SHA-256, so it never changes. It is complete before the row of its blob is written;
an object without a row is an orphan, which `sweep` removes.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from holdfast.core import Value, digest_bytes
from holdfast.core.errors import EngineMissing, InvalidInput, JournalDamaged, StoreUnavailable
from holdfast.store.home import private_folder, sync_folder

SCHEMES = ("file", "s3", "memory")
LARGE_BYTES = 1024 * 1024
"""A blob above this size is an object, if there is a place for objects."""
RETRY = timedelta(seconds=10)
"""Less than a transaction of the database may be idle: one waits while an object is removed."""


class FoundObject(Value):
    """An object of the tenant."""

    digest: str
    modified: datetime


class BlobObjects:
    """The objects of one tenant."""

    def __init__(self, url: str, *, tenant: str, large_bytes: int = LARGE_BYTES) -> None:
        self.url = url
        self.large_bytes = large_bytes
        self._tenant = tenant
        self._folder = Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None
        self._store = _open(url, self._folder)

    async def put(self, digest: str, content: bytes) -> None:
        """Store an object; durable and complete when it returns. Raises StoreUnavailable."""
        import obstore

        with self._explained():
            # In one request: an upload in parts could stay half done, and costs until somebody cleans up.
            await obstore.put_async(self._store, self._name(digest), content, use_multipart=False)
            if self._folder is not None:
                await asyncio.to_thread(_sync, self._folder / self._name(digest), self._folder)

    async def get(self, digest: str) -> bytes | None:
        """The content of an object, unverified; None if there is none. Raises StoreUnavailable."""
        import obstore

        with self._explained():
            try:
                found = await obstore.get_async(self._store, self._name(digest))
                return bytes(await found.bytes_async())
            except FileNotFoundError:
                return None

    async def has(self, digest: str, size: int) -> bool:
        """Whether there is an object of this size. Raises StoreUnavailable."""
        import obstore

        with self._explained():
            try:
                return bool((await obstore.head_async(self._store, self._name(digest)))["size"] == size)
            except FileNotFoundError:
                return False

    async def remove(self, digest: str) -> None:
        """Remove an object. Idempotent. Raises StoreUnavailable."""
        import obstore

        with self._explained(), suppress(FileNotFoundError):
            await obstore.delete_async(self._store, self._name(digest))

    async def all(self) -> AsyncIterator[FoundObject]:
        """Every object of the tenant. Raises StoreUnavailable."""
        import obstore

        with self._explained():
            async for batch in obstore.list(self._store, prefix=f"{self._tenant}/"):
                for each in batch:
                    yield FoundObject(digest=each["path"].rpartition("/")[2], modified=each["last_modified"])

    async def problem_of(self, digest: str, size: int) -> str:
        """What is wrong with an object, in words; empty if nothing is. Reads it. Raises StoreUnavailable."""
        content = await self.get(digest)
        if content is None:
            return "is missing"
        if len(content) != size:
            return f"has {len(content)} of {size} bytes"
        return "" if digest_bytes(content) == digest else "was changed"

    def damaged(self, digest: str, problem: str) -> JournalDamaged:
        """Create the error for an object that cannot be used."""
        return JournalDamaged(
            f"the object of the blob {digest!r} in {self.url!r} {problem}",
            hint="restore it from a backup of the object store, or rewind the session to an earlier turn",
        )

    def _name(self, digest: str) -> str:
        return f"{self._tenant}/{digest[:2]}/{digest}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as problem:
            if isinstance(problem, FileNotFoundError):
                raise
            raise _unavailable(self.url, problem) from problem


def _open(url: str, folder: Path | None) -> Any:  # Any: obstore's classes have no common base
    if urlsplit(url).scheme not in SCHEMES:
        raise InvalidInput(
            f"{urlsplit(url).scheme!r} is not a place for large blobs",
            hint="for example: s3://bucket/holdfast, or file:///mnt/shared/blobs",
        )
    if "@" in urlsplit(url).netloc:
        raise InvalidInput(
            "the place of large blobs contains a password, which would be kept in the database",
            hint="keys belong in the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY",
        )
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ModuleNotFoundError as problem:
        raise EngineMissing(
            f"large blobs in {url!r} need {problem.name!r}",
            hint="install it with: pip install 'holdfast[scale]'",
        ) from problem
    try:
        if folder is not None:
            private_folder(folder)
        if not url.startswith("s3:"):
            return from_url(url)
        # A service on this machine or in a private network may speak plain HTTP; the endpoint says so.
        is_plain = os.environ.get("AWS_ENDPOINT_URL", os.environ.get("AWS_ENDPOINT", "")).startswith("http:")
        return from_url(
            url,
            client_options={"allow_http": is_plain},
            retry_config={"max_retries": 4, "retry_timeout": RETRY},
        )
    except (BaseError, OSError, ValueError) as problem:
        raise _unavailable(url, problem) from problem


def _unavailable(url: str, problem: Exception) -> StoreUnavailable:
    words = str(problem).partition("\n")[0] or type(problem).__name__
    return StoreUnavailable(
        f"the object store {url!r} cannot be used: {words}",
        hint="check that it runs, and its settings in the environment, such as AWS_ENDPOINT_URL and AWS_ACCESS_KEY_ID",
    )


def _sync(path: Path, root: Path) -> None:
    """Make a file of a folder durable: obstore gives it its name without a flush."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    folder = path.parent
    while folder != root.parent and folder != folder.parent:
        sync_folder(folder)
        folder = folder.parent
