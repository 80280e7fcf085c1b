"""Arguments against schemas: stricter than the standard about unknown keys, and never laxer."""

import math
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import JsonObject, Tool
from holdfast.policy import validate_arguments


def problem(schema: JsonObject, arguments: Any) -> str | None:
    return validate_arguments(Tool(name="a.b", parameters=schema), arguments)


PATHS: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "depth": {"type": "integer", "minimum": 0, "maximum": 9},
        "kinds": {"type": "array", "items": {"enum": ["file", "folder"]}, "maxItems": 2},
        "where": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "filter": {"$ref": "#/$defs/filter"},
    },
    "required": ["path"],
    "$defs": {
        "filter": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "and": {"$ref": "#/$defs/filter"}},
            "additionalProperties": False,
        }
    },
}


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a"},
        {"path": "a", "depth": 9, "kinds": ["file"], "where": None},
        {"path": "a", "depth": 3.0},
        {"path": "a", "filter": {"name": "x", "and": {"and": {"name": "y"}}}},
    ],
)
def test_arguments_that_fit_pass(arguments: JsonObject) -> None:
    assert problem(PATHS, arguments) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, 'Missing argument(s): "path"'),
        ({"path": "a", "paht": "b"}, 'Unknown argument(s): "paht"'),
        ({"path": 42}, "must be a string (got integer)"),
        ({"path": None}, "must be a string (got null)"),
        ({"path": ["a"]}, "must be a string (got array)"),
        ({"path": ""}, "minLength"),
        ({"path": "a", "depth": "3"}, "must be an integer (got string)"),
        ({"path": "a", "depth": True}, "must be an integer (got boolean)"),
        ({"path": "a", "depth": 10}, "maximum"),
        ({"path": "a", "depth": math.nan}, "must be finite"),
        ({"path": "a", "kinds": ["file", "socket"]}, '"kinds[1]" must be one of'),
        ({"path": "a", "kinds": ["file"] * 3}, "maxItems"),
        ({"path": "a", "where": 3}, "must be a string"),
        ({"path": "a", "filter": {"and": {"nmae": "x"}}}, "Unknown argument(s)"),
        ([], "must be an object"),
        ("path", "must be an object"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments: Any, words: str) -> None:
    assert words in str(problem(PATHS, arguments))


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "object", "additionalProperties": True}])
def test_a_schema_that_names_nothing_takes_anything_finite(schema: JsonObject) -> None:
    assert problem(schema, {"a": [1, {"b": "c"}]}) is None
    assert problem(schema, {"a": [1, {"b": math.inf}]}) is not None


@pytest.mark.parametrize("rest", [{}, {"additionalProperties": False}])
def test_a_schema_that_takes_no_arguments_takes_none(rest: JsonObject) -> None:
    schema: JsonObject = {"type": "object", "properties": {}, **rest}
    assert problem(schema, {}) is None
    assert problem(schema, {"x": 1}) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/$defs/gone"}}},
        {"properties": {"a": {"$ref": "https://example.com/schema"}}},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": False}},
        {"properties": {"a": 7}},
    ],
)
def test_a_schema_that_cannot_be_followed_refuses(schema: JsonObject) -> None:
    assert problem(schema, {"a": 1}) is not None


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    value: JsonObject = {}
    for _ in range(100_000):
        value = {"and": value}
    for schema in (PATHS, {}):
        assert "nested too deeply" in str(problem(schema, {"path": "a", "filter": value}))


def test_a_schema_that_doubles_itself_at_every_level_is_cut_off() -> None:
    twice: JsonObject = {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}
    schema: JsonObject = {
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"type": "object", "properties": {"a": twice}, "required": ["a"]}},
    }
    value: JsonObject = {}
    for _ in range(50):
        value = {"a": value}
    assert problem(schema, {"a": value}) is not None
    assert problem({"properties": {"a": twice}, "$defs": {"a": twice}}, {"a": 1}) is not None


def test_a_changed_schema_is_compiled_again() -> None:
    for kind, is_fine in (("string", True), ("integer", False)) * 50:
        assert (problem({"properties": {"a": {"type": kind}}}, {"a": "x"}) is None) is is_fine


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.0]), st.text("ab", max_size=2)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=4,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.one_of(
        st.builds(dict, type=TYPES),
        st.builds(dict, type=st.lists(TYPES, min_size=1, max_size=2, unique=True)),
        st.builds(dict, enum=st.lists(SCALARS, min_size=1, max_size=3)),
        st.builds(dict, const=SCALARS),
        st.builds(dict, minimum=st.integers(-1, 1), maxLength=st.integers(0, 1)),
        st.just({}),
    ),
    lambda inner: st.one_of(
        st.builds(dict, type=st.just("array"), items=inner, minItems=st.integers(0, 1)),
        st.builds(
            dict,
            type=st.just("object"),
            properties=st.dictionaries(st.sampled_from("xy"), inner, min_size=1),
            required=st.lists(st.sampled_from("xy"), max_size=1),
        ),
        st.builds(dict, anyOf=st.lists(inner, min_size=1, max_size=2)),
        st.builds(dict, oneOf=st.lists(inner, min_size=1, max_size=2)),
        st.builds(dict, allOf=st.lists(inner, min_size=1, max_size=2)),
    ),
    max_leaves=4,
)


@settings(deadline=None)
@given(SCHEMAS, VALUES)
def test_we_agree_with_the_standard_on_every_named_argument(schema: JsonObject, value: Any) -> None:
    whole: JsonObject = {"type": "object", "properties": {"a": schema}, "additionalProperties": False}
    is_valid = jsonschema.Draft202012Validator(whole).is_valid({"a": value})
    assert (problem(whole, {"a": value}) is None) == is_valid
