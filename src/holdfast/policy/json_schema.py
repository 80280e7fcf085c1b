"""Validates the arguments of a call against the JSON schema of its tool: unknown keys, wrong types, missing arguments.

Covers the part of the standard that tools use. Each schema is compiled once, to a chain of functions. Unsupported keywords
are ignored, as the standard requires. `pattern` and `format` are ignored on purpose: the expression comes from the server
and would run on the guest's text.

Not the jsonschema library, because it accepts keys that the schema does not name, which would let an argument bypass its
role, and because it is five to ten times slower.
"""

import math
from collections.abc import Callable
from functools import partial

from holdfast.core import MAX_DEPTH, Json, JsonObject, Tool

Check = Callable[[str, Json], str | None]
"""From the name and value of an argument to the problem with it, or None."""

_MAX_REFERENCES = 10_000
"""Limit for one validation: a schema that refers to itself twice doubles its references at every level."""


def compile_schema(schema: JsonObject) -> Check:
    """The check for a whole schema. Every `$ref` refers to this schema."""
    root = _Root(schema)
    inner = _compile(schema, root, 0)

    def check(name: str, value: Json) -> str | None:
        root.followed = 0
        try:
            return inner(name, value)
        except RecursionError:
            return "Arguments cannot be validated: the schema of the tool refers to itself without end."

    return check


class _Root:
    """The whole schema, with the number of references followed in it."""

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema
        self.references: dict[str, _Reference] = {}
        self.followed = 0


def missing(required: Json, value: dict[str, Json]) -> str | None:
    """The problem if a required argument is missing."""
    absent = ", ".join(f'"{key}"' for key in _names(required) if key not in value)
    return f"Missing argument(s): {absent}" if absent else None


def kind_of(value: Json) -> str:
    """The JSON type of a value."""
    match value:
        case str():
            return "string"
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def _compile(schema: Json, root: _Root, depth: int) -> Check:
    if schema is True or schema == {}:
        return _accept
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return _reject
    checks: list[Check] = []
    reference = schema.get("$ref")
    if isinstance(reference, str):
        checks.append(root.references.setdefault(reference, _Reference(reference, root)))
    types = schema.get("type")
    if types is not None:
        exact = frozenset(_EXACT[name] for name in _names(types) if name in _EXACT)
        checks.append(partial(_check_type, _names(types), exact))
    if "const" in schema:
        checks.append(partial(_check_choice, (schema["const"],)))
    if isinstance(choices := schema.get("enum"), list):
        checks.append(partial(_check_choice, tuple(choices)))
    checks += _bounds(schema)
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        checks.append(_compile_object(schema, root, depth))
    if "items" in schema:
        checks.append(partial(_check_items, _compile(schema["items"], root, depth + 1)))
    for key, combine in (("anyOf", _check_any), ("oneOf", _check_one), ("allOf", _check_all)):
        if isinstance(parts := schema.get(key), list):
            checks.append(partial(combine, tuple(_compile(part, root, depth + 1) for part in parts)))
    if len(checks) == 1:
        return checks[0]
    return partial(_check_all, tuple(checks))


class _Reference:
    """A `$ref` into the same schema. Compiled on first use, because a schema may refer to itself."""

    def __init__(self, reference: str, root: _Root) -> None:
        self._reference, self._root = reference, root
        self._check: Check | None = None

    def __call__(self, name: str, value: Json) -> str | None:
        self._root.followed += 1
        if self._root.followed > _MAX_REFERENCES:
            return f'Argument "{name}" takes too long to validate against the schema of the tool.'
        if self._check is None:
            self._check = _compile(self._find(), self._root, 0)
        return self._check(name, value)

    def _find(self) -> Json:
        node: Json = self._root.schema
        if not self._reference.startswith("#"):
            return False
        for part in self._reference[1:].split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or key not in node:
                return False
            node = node[key]
        return node


def _compile_object(schema: JsonObject, root: _Root, depth: int) -> Check:
    properties = schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    checks = {key: _compile(part, root, depth + 1) for key, part in named.items()}
    more = schema.get("additionalProperties", True)
    rest = None if more is False else _compile(more, root, depth + 1)
    required = schema.get("required")
    needed = frozenset(_names(required))

    def check(name: str, value: Json) -> str | None:
        if not isinstance(value, dict):
            return None if name else f"Arguments must be an object (got {kind_of(value)})."
        if rest is None and (unknown := value.keys() - checks.keys()):
            valid = ", ".join(f'"{key}"' for key in sorted(checks))
            given = ", ".join(f'"{key}"' for key in sorted(unknown))
            return f"Unknown argument(s): {given}. Valid parameters are: {valid}"
        if not needed <= value.keys():
            return missing(required, value)
        for key, part in value.items():
            one = checks.get(key, rest) or _accept
            if problem := one(f"{name}.{key}" if name else key, part):
                return problem
        return None

    return check


def _accept(name: str, value: Json) -> str | None:
    return None


def _reject(name: str, value: Json) -> str | None:
    return f'Argument "{name}" is refused by the schema of the tool.'


_EXACT: dict[str, type] = {"string": str, "boolean": bool, "integer": int, "array": list, "object": dict}
"""JSON types whose values always have exactly one Python type."""


def _check_type(types: tuple[str, ...], exact: frozenset[type], name: str, value: Json) -> str | None:
    if type(value) in exact:
        return None
    kind = kind_of(value)
    if kind in types or (kind == "integer" and "number" in types):
        return None
    if kind == "number" and "integer" in types and isinstance(value, float) and value.is_integer():
        return None
    wanted = " or ".join(f"an {kind}" if kind[0] in "aio" else f"a {kind}" for kind in types)
    return f'Argument "{name}" must be {wanted} (got {kind}).'


def _check_choice(choices: tuple[Json, ...], name: str, value: Json) -> str | None:
    # True equals 1 in Python and not in JSON.
    if any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in choices):
        return None
    return f'Argument "{name}" must be one of {", ".join(repr(choice) for choice in choices)}.'


def _bounds(schema: JsonObject) -> list[Check]:
    found: list[Check] = []
    for key, test in _BOUNDS.items():
        bound = schema.get(key)
        if isinstance(bound, int | float) and not isinstance(bound, bool):
            found.append(partial(_check_bound, key, float(bound), test))
    return found


def _check_bound(
    key: str, bound: float, test: Callable[[Json, float], bool], name: str, value: Json
) -> str | None:
    return None if test(value, bound) else f'Argument "{name}" violates {key} {bound:g}.'


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_BOUNDS: dict[str, Callable[..., bool]] = {
    "minimum": lambda value, bound: not _is_number(value) or value >= bound,
    "maximum": lambda value, bound: not _is_number(value) or value <= bound,
    "exclusiveMinimum": lambda value, bound: not _is_number(value) or value > bound,
    "exclusiveMaximum": lambda value, bound: not _is_number(value) or value < bound,
    "minLength": lambda value, bound: not isinstance(value, str) or len(value) >= bound,
    "maxLength": lambda value, bound: not isinstance(value, str) or len(value) <= bound,
    "minItems": lambda value, bound: not isinstance(value, list) or len(value) >= bound,
    "maxItems": lambda value, bound: not isinstance(value, list) or len(value) <= bound,
}


def _check_items(check: Check, name: str, value: Json) -> str | None:
    if not isinstance(value, list):
        return None
    return next((p for n, part in enumerate(value) if (p := check(f"{name}[{n}]", part))), None)


def _check_all(checks: tuple[Check, ...], name: str, value: Json) -> str | None:
    for check in checks:
        if problem := check(name, value):
            return problem
    return None


def _check_any(checks: tuple[Check, ...], name: str, value: Json) -> str | None:
    problems = [check(name, value) for check in checks]
    return None if None in problems or not problems else problems[0]


def _check_one(checks: tuple[Check, ...], name: str, value: Json) -> str | None:
    problems = [check(name, value) for check in checks]
    if problems.count(None) == 1 or not problems:
        return None
    return next(
        (problem for problem in problems if problem), f'Argument "{name}" matches more than one alternative.'
    )


def _names(value: Json) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(part for part in value if isinstance(part, str)) if isinstance(value, list) else ()


_MAX_PROBLEM = 500
_CACHE: dict[int, tuple[JsonObject, Check]] = {}
_CACHE_SIZE = 4096


def validate_arguments(tool: Tool, arguments: JsonObject) -> str | None:
    """The problem with the arguments, worded for the model, or None."""
    schema = tool.parameters
    entry = _CACHE.get(id(schema))
    if entry is None or entry[0] is not schema:
        if len(_CACHE) >= _CACHE_SIZE:
            _CACHE.clear()
        # Keeping the schema alive next to its check prevents another object from getting the same id.
        entry = _CACHE[id(schema)] = (schema, _compile_arguments(schema))
    problem = _json_problem(arguments) or entry[1]("", arguments)
    # The message contains the guest's names and values, and it is recorded and shown.
    return None if problem is None else problem[:_MAX_PROBLEM]


def _json_problem(value: Json) -> str | None:
    """NaN and infinities are not JSON and defeat comparisons with bounds. The guest chooses the depth, so no recursion."""
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Json] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
            elif isinstance(one, float) and not math.isfinite(one):
                return "Numbers must be finite."
        level = inner
        if not level:
            return None
    return "Arguments are nested too deeply."


def _compile_arguments(schema: JsonObject) -> Check:
    """Like an object schema, but keys that are not named are refused unless the schema allows additional properties."""
    if "properties" not in schema and "additionalProperties" not in schema:
        return partial(_check_free, schema.get("required"))
    closed: JsonObject = {"additionalProperties": False} | schema
    return compile_schema(closed)


def _check_free(required: Json, name: str, value: Json) -> str | None:
    if not isinstance(value, dict):
        return f"Arguments must be an object (got {kind_of(value)})."
    return missing(required, value)
