"""What a server is handed, and what of its tools is offered: nothing that was judged as something else."""

import pytest

from holdfast.core import ArgumentRoles, Json, Location, Tool
from holdfast.core.errors import PathRefused
from holdfast.mcp.client.resources import EXTRAS
from holdfast.mcp.client.results import resolve_arguments
from holdfast.mcp.client.tool_definitions import read_definitions
from holdfast.mcp.config.environment import environment_for
from holdfast.mcp.config.servers import ServerSpec

PUT = Tool(
    name="files.put",
    parameters={"type": "object", "properties": {"to": {}, "text": {"type": "string"}}},
    roles={"to": ArgumentRoles(default=("write-path",)), "text": ArgumentRoles(default=("none",))},
)


class Places:
    """Paths whose words say what is wrong with them."""

    def locate(self, path: str) -> Location:
        match path.partition(":")[0]:
            case "protected":
                return Location(given=path, real="/w/.git/hooks", protected=".git/hooks")
            case "broken":
                return Location(given=path, problem="it climbs out")
            case _:
                return Location(given=path, real=f"/w/{path}")


@pytest.mark.parametrize("given", ["protected:x", "broken:x", ["a", "protected:x"], {"broken:x": "b"}])
def test_a_path_that_may_not_be_touched_is_handed_to_no_server(given: Json) -> None:
    with pytest.raises(PathRefused, match="cannot be handed on"):
        resolve_arguments(PUT, {"to": given, "text": "protected:x"}, Places())


def test_a_server_is_handed_the_place_that_was_judged_and_other_words_as_they_are() -> None:
    handed = resolve_arguments(PUT, {"to": ["a", {"b": "c"}], "text": "a"}, Places())
    assert handed == {"to": ["/w/a", {"/w/b": "/w/c"}], "text": "a"}


@pytest.mark.parametrize("name", sorted(EXTRAS))
def test_a_tool_cannot_pass_for_an_operation_of_ours(name: str) -> None:
    offered, refused = read_definitions([{"name": name}, {"name": "mine"}])
    assert [each.name for each in offered] == ["mine"]
    assert [(each.name, each.reason) for each in refused] == [(name, "this name is ours")]


def test_a_function_of_the_shell_is_no_variable_for_a_server() -> None:
    given = {"HOME": "() { :; }; touch /tmp/owned", "PATH": "/bin", "OTHER": "x"}
    assert environment_for(ServerSpec(name="files", command="x"), given) == {
        "PATH": "/bin",
        "PYTHONSAFEPATH": "1",
    }
