"""Arguments against a tool's JSON schema: unknown keys, wrong types, missing ones. Compiled once for each schema.

Our own and not jsonschema: that says yes to keys the schema does not name, the very thing that smuggles an argument
past its role, and takes five to ten times as long.
"""

import math
from functools import partial

from holdfast.core import MAX_DEPTH, Json, JsonObject, Tool
from holdfast.policy.schemas import Check, compile_schema, kind_of, missing

_MAX_PROBLEM = 500
_CACHE: dict[int, tuple[JsonObject, Check]] = {}
_CACHE_SIZE = 4096


def validate_arguments(tool: Tool, arguments: JsonObject) -> str | None:
    """What is wrong with the arguments, in words for the model, or None."""
    schema = tool.parameters
    entry = _CACHE.get(id(schema))
    if entry is None or entry[0] is not schema:
        if len(_CACHE) >= _CACHE_SIZE:
            _CACHE.clear()
        # The schema is kept beside its check, so that its id cannot be given to another one.
        entry = _CACHE[id(schema)] = (schema, _compile_arguments(schema))
    problem = _no_json(arguments) or entry[1]("", arguments)
    # Names and values in it are the guest's, and it is recorded and shown.
    return None if problem is None else problem[:_MAX_PROBLEM]


def _no_json(value: Json) -> str | None:
    """NaN and the infinities are not JSON, and compare as no bound expects; the depth is the guest's choice."""
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
    """Like an object schema, but keys that are not named are unknown unless the schema says that more may come."""
    if "properties" not in schema and "additionalProperties" not in schema:
        return partial(_check_free, schema.get("required"))
    closed: JsonObject = {"additionalProperties": False} | schema
    return compile_schema(closed)


def _check_free(required: Json, name: str, value: Json) -> str | None:
    if not isinstance(value, dict):
        return f"Arguments must be an object (got {kind_of(value)})."
    return missing(required, value)
