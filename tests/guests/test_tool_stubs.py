"""Stubs are valid Python whatever a server says about itself."""

import ast
import string

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import Tool
from holdfast.guests import render_stubs
from holdfast.guests.tool_stubs import parameters, python_name

NAMES = st.text(string.ascii_letters + "-_./ 0é:", min_size=1, max_size=12)
SCHEMAS = st.recursive(
    st.sampled_from(
        [{"type": kind} for kind in ("string", "integer", "number", "boolean", "null", "object", "array")]
    )
    | st.just({})
    | st.builds(lambda choices: {"enum": choices}, st.lists(st.text(max_size=5) | st.integers(), max_size=4)),
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda options: {"anyOf": options}, st.lists(inner, max_size=3))
    ),
    max_leaves=5,
)


@given(
    st.lists(
        st.builds(
            Tool,
            name=st.builds(lambda group, verb: f"{group}.{verb}", NAMES, NAMES) | NAMES,
            description=st.text(max_size=40),
            parameters=st.builds(
                lambda properties: {"properties": properties, "required": list(properties)[:1]},
                st.dictionaries(NAMES, SCHEMAS, max_size=3),
            ),
            returns=SCHEMAS,
        ),
        max_size=4,
    )
)
def test_stubs_are_valid_python_and_nothing_in_them_runs(tools: list[Tool]) -> None:
    for statement in ast.parse(render_stubs(tools)).body:
        assert isinstance(statement, (ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AnnAssign))
        assert not [node for node in ast.walk(statement) if isinstance(node, ast.Call)]


@given(NAMES)
def test_every_name_has_an_identifier(name: str) -> None:
    assert python_name(name).isidentifier()


def test_stubs_show_what_a_model_needs_to_call_a_tool() -> None:
    read = Tool(
        name="filesystem.read_file",
        description="Read a file.\n  All of it.",
        parameters={
            "properties": {
                "head": {"type": ["integer", "null"]},
                "path": {"type": "string"},
                "mode": {"enum": ["text", "binary"]},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["path"],
        },
        returns={"type": "string"},
    )
    assert (
        render_stubs([read, Tool(name="now", returns={"type": "number"})])
        == '''from typing import Any, Literal

class FilesystemTools:
    def read_file(self, path: str, head: int | None = ..., mode: Literal['text', 'binary'] = ..., tags: list[str] = ...) -> str:
        """Read a file. All of it."""
        ...
filesystem: FilesystemTools

def now() -> float: ...
'''
    )


def test_a_tool_named_like_a_type_hides_no_annotation() -> None:
    tools = [
        Tool(name="world.list", returns={"type": "array", "items": {"type": "string"}}),
        Tool(name="world.read", returns={"type": "string"}),
    ]
    assert "def list(self) -> Any: ..." in render_stubs(tools)
    assert "def read(self) -> str: ..." in render_stubs(tools)


def test_required_parameters_come_first() -> None:
    tool = Tool(name="a.b", parameters={"properties": {"x": {}, "y": {}}, "required": ["y"]})
    assert [parameter.name for parameter in parameters(tool)] == ["y", "x"]
