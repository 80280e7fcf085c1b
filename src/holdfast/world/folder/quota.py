"""The quota of a workspace: limits for the bytes of content and the number of files."""

from collections.abc import Callable

from holdfast.core import Value, pluralize
from holdfast.core.errors import InvalidInput, QuotaExceeded


class Quota(Value):
    """The limits of a workspace; None means unlimited."""

    bytes: int | None = None
    files: int | None = None

    def __post_init__(self) -> None:
        if any(bound is not None and bound < 0 for bound in (self.bytes, self.files)):
            raise InvalidInput("a quota must be 0 or more")


class DiskUsage(Value):
    """What a workspace contains."""

    bytes: int = 0
    files: int = 0


class UsageMeter:
    """Enforces the quota of a workspace. It counts the files once and then tracks the changes.

    Other processes may write into the folder, so it counts again before it refuses. Call `recount` after code ran with direct
    access to the folder.
    """

    def __init__(self, quota: Quota | None, count: Callable[[], DiskUsage]) -> None:
        is_bound = quota is not None and (quota.bytes is not None or quota.files is not None)
        self._quota = quota if is_bound else None
        self._count = count
        self._usage: DiskUsage | None = None

    def allow(self, *, bytes: int, files: int) -> None:
        """Raise QuotaExceeded if growing by this much exceeds the quota. Shrinking is always allowed."""
        if self._quota is None or (bytes <= 0 and files <= 0):
            return
        if self._usage is not None and not self._is_over(self._usage, bytes, files):
            return
        self._usage = self._count()
        if self._is_over(self._usage, bytes, files):
            raise QuotaExceeded(
                f"the workspace would have {pluralize(self._usage.bytes + max(bytes, 0), 'byte')} in "
                f"{pluralize(self._usage.files + max(files, 0), 'file')}, but may have "
                f"{_bound(self._quota.bytes, 'byte')} in {_bound(self._quota.files, 'file')}",
                hint="delete files that are not needed, or raise the quota",
            )

    def record(self, *, bytes: int, files: int) -> None:
        """Track a change that was made."""
        if self._usage is not None:
            self._usage = DiskUsage(bytes=self._usage.bytes + bytes, files=self._usage.files + files)

    def recount(self) -> None:
        """Count again before the next growth."""
        self._usage = None

    def _is_over(self, usage: DiskUsage, bytes: int, files: int) -> bool:
        assert self._quota is not None
        return _exceeds(usage.bytes + bytes, self._quota.bytes, bytes) or _exceeds(
            usage.files + files, self._quota.files, files
        )


def _exceeds(total: int, bound: int | None, growth: int) -> bool:
    return bound is not None and growth > 0 and total > bound


def _bound(bound: int | None, noun: str) -> str:
    return f"any number of {noun}s" if bound is None else pluralize(bound, noun)
