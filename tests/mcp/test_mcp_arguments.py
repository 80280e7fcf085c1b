"""Arguments for a server: it gets exactly the paths that the policy judged."""

from collections.abc import Sequence

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


class FakePaths:
    """Resolves paths; a prefix says what is wrong with one."""

    def locate(self, path: str) -> Location:
        match path.partition(":")[0]:
            case "protected":
                return Location(given=path, real="/w/.git/hooks", protected=".git/hooks")
            case "broken":
                return Location(given=path, problem="it leads outside")
            case _:
                return Location(given=path, real=f"/w/{path}")

    def locate_name(self, given: str) -> Location:
        return self.locate(given)

    def closed_below(self, location: Location) -> str | None:
        return None

    def locate_all(self, given: Sequence[str]) -> list[Location]:
        return [self.locate(each) for each in given]


@pytest.mark.parametrize("given", ["protected:x", "broken:x", ["a", "protected:x"], {"broken:x": "b"}])
def test_a_path_that_is_protected_or_invalid_is_not_passed_to_a_server(given: Json) -> None:
    with pytest.raises(PathRefused, match="is not passed to the server"):
        resolve_arguments(PUT, {"to": given, "text": "protected:x"}, FakePaths())


def test_a_server_gets_the_judged_paths_and_other_arguments_unchanged() -> None:
    resolved = resolve_arguments(PUT, {"to": ["a", {"b": "c"}], "text": "a"}, FakePaths())
    assert resolved == {"to": ["/w/a", {"/w/b": "/w/c"}], "text": "a"}


@pytest.mark.parametrize("name", sorted(EXTRAS))
def test_a_tool_cannot_use_the_name_of_a_builtin_operation(name: str) -> None:
    offered, refused = read_definitions([{"name": name}, {"name": "mine"}])
    assert [each.name for each in offered] == ["mine"]
    assert [(each.name, each.reason) for each in refused] == [(name, "this name is reserved for Holdfast")]


def test_a_shell_function_in_the_environment_is_not_passed_to_a_server() -> None:
    given = {"HOME": "() { :; }; touch /tmp/owned", "PATH": "/bin", "OTHER": "x"}
    assert environment_for(ServerSpec(name="files", command="x"), given) == {
        "PATH": "/bin",
        "PYTHONSAFEPATH": "1",
    }
