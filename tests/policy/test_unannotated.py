"""An argument without a role is denied, whatever the schema of its tool accepts."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.cli import main
from holdfast.core import ArgumentRoles, Call, Decision, Json, JsonObject, Role, Tool, call_id
from holdfast.policy import LexicalPaths, Request, RulePolicy, targets_of
from holdfast.policy.parser import parse_policy

INSIDE = """\
policy: inside
rules:
  - name: inside
    allow: files.*
    inside: true
    because: it stays inside
  - name: bare
    allow: files.*
    roles: [none, content]
    because: data
"""
OPEN: list[JsonObject] = [
    {},
    {"type": "object"},
    {"type": "object", "additionalProperties": True},
    {"type": "object", "additionalProperties": {"type": "string"}},
    {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": True},
    {"type": "object", "properties": {"path": {}}, "additionalProperties": {}},
    {
        "type": "object",
        "properties": {"path": {}},
        "patternProperties": {"^f": {"type": "string"}},
        "additionalProperties": True,
    },
    {"anyOf": [{"type": "object"}], "additionalProperties": True},
]


def judge(schema: JsonObject, arguments: JsonObject, **roles: tuple[Role, ...]) -> Decision:
    known = {name: ArgumentRoles(default=each) for name, each in roles.items()}
    tool = Tool(name="files.do", parameters=schema, roles=known)
    call = Call(id=call_id(1, 1), operation="files.do", arguments=arguments)
    targets = targets_of(tool, arguments, LexicalPaths())
    policy = RulePolicy(parse_policy(INSIDE, source="test"))
    return policy.judge(Request(call=call, tool=tool, targets=targets))


@pytest.mark.parametrize("schema", OPEN)
@pytest.mark.promise("P04")
def test_f42_an_open_schema_does_not_open_the_policy(schema: JsonObject) -> None:
    decision = judge(schema, {"path": "sub", "file": "/outside/f"}, path=("read-path",))
    assert (decision.verdict, decision.rule) == ("deny", "missing-annotation")
    assert "'file'" in decision.reason
    assert "holdfast mcp annotate files --role do.file=ROLE" in decision.reason
    assert judge(schema, {"path": "sub"}, path=("read-path",)).verdict == "allow"


@pytest.mark.parametrize("value", [None, 1, "", [], {}, [{"file": "/outside/f"}]])
def test_f42_the_value_of_an_argument_without_a_role_does_not_matter(value: Json) -> None:
    assert judge({}, {"path": "sub", "file": value}, path=("read-path",)).rule == "missing-annotation"


def test_f42_an_empty_list_of_roles_is_not_a_role() -> None:
    assert judge({}, {"path": "sub", "file": "/f"}, path=("read-path",), file=()).rule == "missing-annotation"


OPTIONS: JsonObject = {
    "type": "object",
    "properties": {
        "path": {},
        "options": {
            "type": "object",
            "properties": {
                "deep": {"type": "boolean"},
                "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}},
                "headers": {"type": "object"},
            },
            "additionalProperties": True,
        },
    },
    "$defs": {"step": {"anyOf": [{"properties": {"name": {}, "then": {"$ref": "#/$defs/step"}}}]}},
}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"file": "/outside/f"}, "options.file"),
        ({"deep": True, "steps": [{"name": "a"}, {"name": "b", "file": "/f"}]}, "options.steps[1].file"),
        ({"steps": [{"then": {"then": {"file": "/f"}}}]}, "options.steps[0].then.then.file"),
    ],
)
def test_f42_none_covers_only_the_keys_that_the_schema_names(options: Json, named: str) -> None:
    arguments: JsonObject = {"path": "sub", "options": options}
    decision = judge(OPTIONS, arguments, path=("read-path",), options=("none",))
    assert (decision.verdict, decision.rule) == ("deny", "missing-annotation")
    assert repr(named) in decision.reason
    assert "--role do.options=content" in decision.reason
    assert judge(OPTIONS, arguments, path=("read-path",), options=("content",)).verdict == "allow"


def test_f42_a_map_without_named_keys_is_one_value() -> None:
    arguments: JsonObject = {"path": "sub", "options": {"headers": {"accept": "x"}, "deep": True}}
    assert judge(OPTIONS, arguments, path=("read-path",), options=("none",)).verdict == "allow"


NAMED: JsonObject = {"type": "object", "properties": {"a": {}}}


@pytest.mark.promise("P04")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"unevaluatedProperties": NAMED}, {"k": {"file": "/outside/f"}}),
        ({"dependentSchemas": {"k": NAMED}}, {"file": "/outside/f"}),
        ({"contains": NAMED}, [{"file": "/outside/f"}]),
        ({"unevaluatedItems": NAMED}, [{"file": "/outside/f"}]),
        ({"additionalItems": NAMED}, [{"file": "/outside/f"}]),
        ({"dependencies": {"k": NAMED}}, {"file": "/outside/f"}),
        ({"$dynamicRef": "#named"}, {"file": "/outside/f"}),
        ({"$dynamicRef": "#named"}, [{"file": "/outside/f"}]),
        ({"$recursiveRef": "#"}, {"file": "/outside/f"}),
        ({"$ref": "#named"}, {"o": "/outside/f"}),
        ({"$ref": "other.json"}, {"o": "/outside/f"}),
        ({"$ref": "https://server.example/s.json#/$defs/named"}, {"file": "/outside/f"}),
        ({"$ref": "#/$defs/%6eamed"}, {"file": "/outside/f"}),
        ({"$ref": "#/$defs/missing"}, [[{"file": "/outside/f"}]]),
        ({"$ref": 7}, {"file": "/outside/f"}),
    ],
)
def test_f42_rare_keywords_name_keys_too_and_references_that_are_not_followed_name_none(
    schema: JsonObject, value: Json
) -> None:
    defined: JsonObject = {"named": {**NAMED, "$anchor": "named", "$dynamicAnchor": "named"}}
    whole: JsonObject = {"type": "object", "properties": {"o": schema}, "$defs": defined}
    assert judge(whole, {"o": value}, o=("none",)).rule in ("missing-annotation", "invalid-arguments")
    assert judge(whole, {"o": "a value"}, o=("none",)).rule != "missing-annotation"


def test_f42_a_judged_role_judges_every_key_and_value() -> None:
    arguments: JsonObject = {"path": {"any": ["sub", {"key": "/outside/f"}]}}
    assert judge({}, arguments, path=("read-path",)).rule == "default-deny"


names = st.sampled_from(["path", "file", "target", "options", "a b", ""])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
schemas: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        [True, {}, {"type": "object"}, {"$ref": "#"}, {"$ref": "#/properties/path"}, {"$dynamicRef": "#a"}]
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(names, inner, max_size=3),
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.just(".*"), inner, max_size=1),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, max_size=2),
        },
    ),
    max_leaves=8,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    schema=schemas.map(lambda each: each if isinstance(each, dict) else {}),
    arguments=st.dictionaries(names, values, max_size=4),
    annotated=st.sets(names, max_size=4),
    role=st.sampled_from(["none", "content", "read-path"]),
)
def test_f42_no_generated_schema_lets_an_argument_without_a_role_pass(
    schema: JsonObject, arguments: JsonObject, annotated: set[str], role: Role
) -> None:
    decision = judge(schema, arguments, **dict.fromkeys(annotated, (role,)))
    if not arguments.keys() <= annotated:
        assert decision.verdict == "deny"


class Shape(NamedTuple):
    """A schema, a value that fits it, and the objects in the value whose keys the schema names."""

    schema: JsonObject
    value: Json
    objects: tuple[dict[str, Json], ...]


LEAF = Shape({"type": "string"}, "x", ())


def _object(inner: dict[str, Shape], wrap: str, is_open: bool) -> Shape:
    """An object with named keys, whose names the schema gives directly or in a roundabout way."""
    named: JsonObject = {"properties": {key: each.schema for key, each in inner.items()}}
    value: dict[str, Json] = {key: each.value for key, each in inner.items()}
    schema: JsonObject
    match wrap:
        case "anyOf" | "oneOf" | "allOf":
            schema = {wrap: [named]}
        case "then":
            schema = {"if": True, "then": named}
        case _:
            schema = named
    if is_open:
        schema |= {"additionalProperties": True, "patternProperties": {"^(?!planted)": {}}}
    return Shape(schema, value, (value, *(each for part in inner.values() for each in part.objects)))


def _list(inner: Shape, keyword: str) -> Shape:
    return Shape(
        {"type": "array", keyword: inner.schema if keyword == "items" else [inner.schema]},
        [inner.value],
        inner.objects,
    )


def _map(inner: Shape, keyword: str) -> Shape:
    """A map with free keys: one value by itself, but an object in it is as closed as anywhere else."""
    schema: JsonObject = {"additionalProperties": inner.schema}
    if keyword == "patternProperties":
        schema = {"patternProperties": {".*": inner.schema}, "additionalProperties": True}
    return Shape(schema, {"free": inner.value}, inner.objects)


shapes: st.SearchStrategy[Shape] = st.recursive(
    st.just(LEAF),
    lambda inner: (
        st.builds(
            _object,
            st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2),
            st.sampled_from(["", "anyOf", "oneOf", "allOf", "then"]),
            st.booleans(),
        )
        | st.builds(_list, inner, st.sampled_from(["items", "prefixItems"]))
        | st.builds(_map, inner, st.sampled_from(["additionalProperties", "patternProperties"]))
    ),
    max_leaves=6,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(shape=shapes.filter(lambda each: bool(each.objects)), data=st.data(), by_reference=st.booleans())
@pytest.mark.promise("P04")
def test_f42_a_key_planted_at_any_depth_is_found(
    shape: Shape, data: st.DataObject, by_reference: bool
) -> None:
    options: Json = {"$ref": "#/$defs/options"} if by_reference else shape.schema
    schema: JsonObject = {
        "properties": {"path": {}, "options": options},
        "$defs": {"options": shape.schema},
        "additionalProperties": True,
    }
    arguments: JsonObject = {"path": "sub", "options": shape.value}
    roles: dict[str, tuple[Role, ...]] = {"path": ("read-path",), "options": ("none",)}
    assert judge(schema, arguments, **roles).verdict == "allow"
    data.draw(st.sampled_from(shape.objects))["planted"] = "/outside/f"
    decision = judge(schema, arguments, **roles)
    assert decision.verdict == "deny"
    assert decision.rule in ("missing-annotation", "invalid-arguments")


def test_f42_policy_check_denies_it_and_the_named_command_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    (home / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"docs": {"command": "none"}}}))
    (tmp_path / "inside.yaml").write_text(INSIDE.replace("files.", "docs."))

    def check(**arguments: str) -> Any:
        call = json.dumps({"operation": "docs.do", "arguments": arguments})
        assert main(["policy", "check", "--policy", "inside.yaml", "--call", call, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert main(["mcp", "annotate", "docs", "--role", "do.path=read-path"]) == 0
    capsys.readouterr()
    denied = check(path="sub", file="sub/f")
    assert (denied["decision"], denied["rule"]) == ("deny", "missing-annotation")
    assert "--role do.file=ROLE" in denied["reason"]
    assert main(["mcp", "annotate", "docs", "--role", "do.file=read-path"]) == 0
    capsys.readouterr()
    assert check(path="sub", file="sub/f")["decision"] == "allow"
    assert check(path="sub", file="/outside/f")["decision"] == "deny"
    assert main(["mcp", "annotate", "docs", "--role", "do.file=nonsense"]) != 0
