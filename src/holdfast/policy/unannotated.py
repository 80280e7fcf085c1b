"""Finds the parts of a call that no role covers. The schema comes from the server, so an open schema opens nothing.

An argument needs its own role, even if the schema accepts any name. A role covers everything in its argument. A role
that policies judge makes every name and value in the argument a target; `content` is a person's word that all of it is
data. `none` covers what the schema shows: inside such an argument, an object may have only the keys that the schema names.
An object whose keys the schema never names, such as a map of headers, is one value. Where the schema refers to something that
is not followed here, nothing is named.
"""

from collections.abc import Iterator, Sequence

from holdfast.core import Json, JsonObject, Tool
from holdfast.policy.targets import roles_of

_ALTERNATIVES = ("anyOf", "oneOf", "allOf")
_CONDITIONALS = ("if", "then", "else")
_BY_KEY = ("dependentSchemas", "dependencies")
_NOT_FOLLOWED = ("$dynamicRef", "$recursiveRef")


def unannotated_argument(tool: Tool, arguments: JsonObject) -> str | None:
    """The first argument without a role, or the first key in an argument that its role does not cover, as `a.b[0].c`."""
    roles = roles_of(tool, arguments)
    for name, value in arguments.items():
        if not roles.get(name):
            return name
        if set(roles[name]) == {"none"} and isinstance(value, dict | list):
            found = _Schema(tool.parameters).unnamed_key(name, value)
            if found is not None:
                return found
    return None


class _Schema:
    """The schema of a tool, read for the keys it names at each place. What it allows is checked elsewhere."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root

    def unnamed_key(self, argument: str, value: Json) -> str | None:
        """The first key that the schema does not name, where it names some."""
        waiting = [(argument, value, self._property(self._parts([self._root]), argument))]
        while waiting:  # a stack instead of recursion, because the guest chooses the depth
            place, here, schemas = waiting.pop()
            parts = self._parts(schemas)
            if isinstance(here, list):
                items = [each for part in parts for each in _item_schemas(part)]
                items += [part for part in parts if self._is_opaque(part)]
                waiting += [(f"{place}[{number}]", one, items) for number, one in enumerate(here)]
            elif isinstance(here, dict):
                names_keys = any(
                    isinstance(part.get("properties"), dict) or self._is_opaque(part) for part in parts
                )
                for key, one in here.items():
                    inner = self._property(parts, key)
                    if names_keys and not inner:
                        return f"{place}.{key}"
                    waiting.append((f"{place}.{key}", one, inner or _rest_schemas(parts)))
        return None

    def _parts(self, schemas: Sequence[Json]) -> list[JsonObject]:
        """The schemas with everything that they refer to or combine, each once."""
        found: dict[int, JsonObject] = {}
        waiting = list(schemas)
        while waiting:
            schema = waiting.pop()
            if not isinstance(schema, dict) or id(schema) in found:
                continue
            found[id(schema)] = schema
            waiting.append(self._referred(schema))
            for key in _ALTERNATIVES:
                if isinstance(parts := schema.get(key), list):
                    waiting += parts
            waiting += [schema[key] for key in _CONDITIONALS if key in schema]
            for key in _BY_KEY:
                if isinstance(dependent := schema.get(key), dict):
                    waiting += dependent.values()
        return list(found.values())

    def _property(self, parts: Sequence[JsonObject], key: str) -> list[Json]:
        named = (part.get("properties") for part in parts)
        return [each[key] for each in named if isinstance(each, dict) and key in each]

    def _is_opaque(self, part: JsonObject) -> bool:
        """Whether a schema refers to something that is not followed: to an anchor, another document or nothing."""
        if any(key in part for key in _NOT_FOLLOWED):
            return True
        return "$ref" in part and not isinstance(self._referred(part), dict | bool)

    def _referred(self, part: JsonObject) -> Json:
        """What `$ref` points to in the same schema; None if that is not known."""
        reference = part.get("$ref")
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return None
        node: Json = self._root
        for name in reference.split("/")[1:]:
            key = name.replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, dict) else None
        return node


def _item_schemas(part: JsonObject) -> Iterator[Json]:
    for key in ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"):
        match part.get(key):
            case list(several):
                yield from several
            case None:
                pass
            case one:
                yield one


def _rest_schemas(parts: Sequence[JsonObject]) -> list[Json]:
    """The schemas of the values in an object whose keys are not named."""
    found: list[Json] = []
    for part in parts:
        found += (part.get("additionalProperties"), part.get("unevaluatedProperties"))
        if isinstance(patterns := part.get("patternProperties"), dict):
            found += patterns.values()
    return found
