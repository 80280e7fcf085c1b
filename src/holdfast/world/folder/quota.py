"""How large a workspace may grow: bytes of content and number of files."""

from collections.abc import Callable

from holdfast.core import Value, pluralize
from holdfast.core.errors import InvalidInput, QuotaExceeded


class Quota(Value):
    """Upper bounds of a workspace; None is no bound."""

    bytes: int | None = None
    files: int | None = None

    def __post_init__(self) -> None:
        if any(bound is not None and bound < 0 for bound in (self.bytes, self.files)):
            raise InvalidInput("a quota is a number from 0 up")


class Held(Value):
    """What a workspace holds."""

    bytes: int = 0
    files: int = 0


class UsageMeter:
    """Holds a workspace to its quota. It counts once and then keeps account of what passes through it.

    Others may write into the folder behind our back; so before it says no it counts again, and `recount` is for after
    a run of code that had the folder to itself.
    """

    def __init__(self, quota: Quota | None, count: Callable[[], Held]) -> None:
        is_bound = quota is not None and (quota.bytes is not None or quota.files is not None)
        self._quota = quota if is_bound else None
        self._count = count
        self._held: Held | None = None

    def allow(self, *, bytes: int, files: int) -> None:
        """Raise QuotaExceeded where growing by this much leads past the quota; shrinking always may be."""
        if self._quota is None or (bytes <= 0 and files <= 0):
            return
        if self._held is not None and not self._is_over(self._held, bytes, files):
            return
        self._held = self._count()
        if self._is_over(self._held, bytes, files):
            raise QuotaExceeded(
                f"the workspace would hold {pluralize(self._held.bytes + max(bytes, 0), 'byte')} in "
                f"{pluralize(self._held.files + max(files, 0), 'file')}, and may hold "
                f"{_bound(self._quota.bytes, 'byte')} in {_bound(self._quota.files, 'file')}",
                hint="delete what is not needed, or raise the quota",
            )

    def note(self, *, bytes: int, files: int) -> None:
        """Keep account of a change that was made."""
        if self._held is not None:
            self._held = Held(bytes=self._held.bytes + bytes, files=self._held.files + files)

    def recount(self) -> None:
        """Forget the account; the next growth counts anew."""
        self._held = None

    def _is_over(self, held: Held, bytes: int, files: int) -> bool:
        assert self._quota is not None
        return _exceeds(held.bytes + bytes, self._quota.bytes, bytes) or _exceeds(
            held.files + files, self._quota.files, files
        )


def _exceeds(total: int, bound: int | None, growth: int) -> bool:
    return bound is not None and growth > 0 and total > bound


def _bound(bound: int | None, noun: str) -> str:
    return f"any number of {noun}s" if bound is None else pluralize(bound, noun)
