"""Where an argument came from, in words for the person who is asked: field, tool, file, call and sender."""

from collections.abc import Iterator

from holdfast.core import Json, Origin, scalars_in, texts_in
from holdfast.gate.labels.session_origins import FILE_GROUP, ReadResult, SessionOrigins
from holdfast.world import GUEST_ROOTS

_SENDERS = ("sender", "from", "from_", "author", "owner", "user", "username")
"""Fields that name who wrote a record."""
_MAX_SHOWN = 60
_MIN_NAME = 3
"""Of what a record names; a shorter text stands in every record."""


class SourceWords:
    """Describes the origins of values by what the session has read."""

    def __init__(self, session: SessionOrigins) -> None:
        self._session = session

    def describe(self, value: Json, origins: list[Origin]) -> str:
        """The origins of a value that are below the person's own, at most two of them."""
        words = list(
            dict.fromkeys(self._words(one, value) for one in sorted(origins, key=lambda one: one.kind))
        )
        more = f" and {len(words) - 2} more" if len(words) > 2 else ""
        return ", ".join(words[:2]) + more

    def is_new(self, operation: str, argument: str, value: Json) -> bool:
        """Whether no earlier call of the session had this value there."""
        return not any(
            each.operation == operation and each.arguments.get(argument) == value
            for each in self._session.results
        )

    def _words(self, origin: Origin, value: Json) -> str:
        match origin.kind:
            case "written":
                return "the text of a program that was written after a stranger's words were shown"
            case "session":
                return "anything that the session has read"
            case "unknown":
                return "somewhere unknown"
            case "file":
                wanted = next((scalar for scalar in scalars_in(value) if scalar), "")
                read = self._result_with(wanted, FILE_GROUP)
                return (
                    "a file"
                    if read is None
                    else f"{_given(read)} (call {read.call}){self._sent_by(read, wanted)}"
                )
            case "read":
                field = f"{'.'.join(origin.path)} of " if origin.path else ""
                wanted = next((scalar for scalar in scalars_in(value) if scalar), "")
                read = self._result_with(wanted, origin.operation)
                if read is None:
                    return f"{field}{origin.operation}"
                given = f"{_given(read)}, " if _given(read) else ""
                return f"{field}{origin.operation} ({given}call {read.call}){self._sent_by(read, wanted)}"

    def _result_with(self, text: str, operation: str) -> ReadResult | None:
        """The newest result of an operation, or of a group of them, that has a text in it."""
        for each in reversed(self._session.results) if text else ():
            is_meant = each.operation == operation or (
                operation.endswith(".") and each.operation.startswith(operation)
            )
            if is_meant and any(text in one for one in texts_in(each.result)):
                return each
        return None

    def _sent_by(self, read: ReadResult, text: str) -> str:
        """Who sent the record with a text, or the record that names where the text was read."""
        if sender := next(_senders(read.result, text), ""):
            return f", by {_short(sender)}"
        given = _given(read)
        if read.operation.startswith(FILE_GROUP):
            given = given.rpartition("/")[2]
        for each in reversed(self._session.results) if len(given) >= _MIN_NAME else ():
            if each.call != read.call and (sender := next(_senders(each.result, given), "")):
                return f", named by {_short(sender)}"
        return ""


def _given(read: ReadResult) -> str:
    """What a call was given first: a query, or the path of a file."""
    given = next(iter(scalars_in(list(read.arguments.values()))), "")
    if read.operation.startswith(FILE_GROUP):
        root = next((each for each in GUEST_ROOTS if given.startswith(f"{each}/")), "")
        given = given.removeprefix(f"{root}/")
    return _short(given)


def _short(text: str) -> str:
    return " ".join(text.split())[:_MAX_SHOWN]


def _senders(value: Json, text: str) -> Iterator[str]:
    """Who is named as the sender of a record in which a text stands."""
    waiting: list[tuple[Json, str]] = [(value, "")]
    while waiting:
        one, sender = waiting.pop()
        match one:
            case str(found):
                if sender and text in found and found != sender:
                    yield sender
            case list(items):
                waiting += [(item, sender) for item in items]
            case dict(members):
                named = (members[name] for name in _SENDERS if name in members)
                sender = next((each for each in named if isinstance(each, str) and each), sender)
                waiting += [(member, sender) for member in members.values()]
            case _:
                pass
