"""Suggested levels for the fields of results, from the output schema of a tool, for a person to put into a policy.

A field whose type cannot carry a sentence (a number, a date, an identifier, one of a fixed set) is a candidate for `own`, an e-mail
address for `known`. Free text stays a stranger's. The schema is a claim of the server, so a person decides.
"""

from collections.abc import Iterator

from holdfast.core import Json, JsonObject, Value

MAX_DEPTH = 4
_OWN_FORMATS = frozenset({"date-time", "date", "time", "duration", "uuid"})
_KNOWN_FORMATS = frozenset({"email", "idn-email"})
_OWN_TYPES = frozenset({"integer", "number", "boolean"})


class LevelSuggestion(Value):
    """The fields of a tool's results that are not free text."""

    operation: str
    own: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    def line(self) -> str:
        """The line for `labels: fields:` of a policy."""
        lists = [
            f"{name}: [{', '.join(fields)}]"
            for name, fields in (("own", self.own), ("known", self.known))
            if fields
        ]
        return f"{self.operation}: {{{', '.join(lists)}}}"


def suggest_levels(operation: str, returns: JsonObject) -> LevelSuggestion | None:
    """Suggest levels for the results of a tool; None if its schema says nothing about fields."""
    own: list[str] = []
    known: list[str] = []
    for path, schema in _leaves(returns, ()):
        if not path:
            continue
        kind, form = schema.get("type"), schema.get("format")
        if (
            kind in _OWN_TYPES
            or form in _OWN_FORMATS
            or isinstance(schema.get("enum"), list)
            or "const" in schema
        ):
            own.append(".".join(path))
        elif form in _KNOWN_FORMATS:
            known.append(".".join(path))
    if not own and not known:
        return None
    return LevelSuggestion(operation=operation, own=tuple(own), known=tuple(known))


def _leaves(schema: Json, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], JsonObject]]:
    """The fields of a schema that hold single values. Positions in lists are left out, as in a policy."""
    if not isinstance(schema, dict) or len(path) > MAX_DEPTH:
        return
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(properties, dict):
        for name, each in properties.items():
            if name.isidentifier():
                yield from _leaves(each, (*path, name))
    elif isinstance(items, dict):
        yield from _leaves(items, path)
    else:
        yield path, schema
