"""From arguments to targets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import (
    ArgumentRoles,
    CommandTarget,
    Condition,
    ConditionalRoles,
    Json,
    JsonObject,
    Location,
    NameTarget,
    PathTarget,
    Role,
    Tool,
    UrlTarget,
)
from holdfast.policy import LexicalPaths, targets_of


class CountingPaths(LexicalPaths):
    """Counts how often a path is resolved."""

    count = 0

    def locate(self, given: str) -> Location:
        self.count += 1
        return super().locate(given)


def tool(**roles: tuple[Role, ...]) -> Tool:
    return Tool(name="a.b", roles={name: ArgumentRoles(default=one) for name, one in roles.items()})


def places(one: Tool, arguments: JsonObject) -> list[str | None]:
    targets = targets_of(one, arguments, LexicalPaths())
    return [target.location.inside for target in targets if isinstance(target, PathTarget)]


def test_each_element_of_an_array_is_a_target() -> None:
    assert places(tool(paths=("read-path",)), {"paths": ["a", ["b", "c"]]}) == ["a", "b", "c"]


def test_keys_and_values_of_an_object_are_targets() -> None:
    assert places(tool(files=("write-path",)), {"files": {"a": {"b": "c"}}}) == ["a", "b", "c"]


def test_a_value_that_is_not_a_string_is_a_target_with_a_problem() -> None:
    targets = targets_of(tool(paths=("read-path",)), {"paths": [42, None, True, "a"]}, LexicalPaths())
    problems = [target.location.problem is not None for target in targets if isinstance(target, PathTarget)]
    assert problems == [True, True, True, False]


def test_an_argument_with_two_roles_is_two_targets_resolved_once() -> None:
    paths = CountingPaths()
    targets = targets_of(tool(source=("read-path", "delete-path")), {"source": "a"}, paths)
    assert [target.role for target in targets] == ["read-path", "delete-path"]
    assert paths.count == 1


def test_data_is_not_a_target() -> None:
    assert targets_of(tool(content=("none",)), {"content": "/etc/passwd"}, LexicalPaths()) == ()


def test_an_argument_without_roles_is_not_a_target() -> None:
    assert targets_of(tool(path=("read-path",)), {"other": "x"}, LexicalPaths()) == ()


def test_urls_and_names_become_targets_of_their_kind() -> None:
    arguments: JsonObject = {"url": "HTTPS://Example.com", "owner": "acme", "domain": "example.org"}
    targets = targets_of(
        tool(url=("fetch-url",), owner=("github-owner",), domain=("proxy-domain",)), arguments, LexicalPaths()
    )
    assert [type(target) for target in targets] == [UrlTarget, NameTarget, UrlTarget]
    assert [target.host for target in targets if isinstance(target, UrlTarget)] == [
        "example.com",
        "example.org",
    ]


@pytest.mark.parametrize(
    "domain", ["good.example@evil.example", "good.example/evil", "good.example#", "https://x.example"]
)
def test_a_domain_is_a_plain_host(domain: str) -> None:
    (target,) = targets_of(tool(domain=("proxy-domain",)), {"domain": domain}, LexicalPaths())
    assert isinstance(target, UrlTarget)
    assert target.problem is not None


@pytest.mark.parametrize("port", [80, 443])
def test_a_connection_is_named_by_host_and_port_without_a_scheme(port: int) -> None:
    one = tool(host=("proxy-domain",), port=("none",))
    (target,) = targets_of(one, {"host": "example.org", "port": port}, LexicalPaths())
    assert isinstance(target, UrlTarget)
    assert target.given == f"example.org:{port}"


def test_a_command_that_appends_is_shown_so_and_is_not_one_that_overwrites() -> None:
    one = tool(script=("command",))
    appending, overwriting = (
        targets_of(one, {"script": f"sort < a {way} 'b c'"}, LexicalPaths())[0] for way in (">>", ">")
    )
    assert isinstance(appending, CommandTarget)
    assert isinstance(overwriting, CommandTarget)
    assert (appending.text, overwriting.text) == ("sort < a >> 'b c'", "sort < a > 'b c'")
    assert appending != overwriting


def conditional(condition: Condition) -> Tool:
    roles = ArgumentRoles(
        default=("read-path", "write-path"),
        when=(ConditionalRoles(condition=condition, roles=("read-path",)),),
    )
    return Tool(name="a.b", roles={"path": roles})


@pytest.mark.parametrize(
    ("condition", "flag", "is_narrowed"),
    [
        (Condition(argument="flag", equals=True), {"flag": True}, True),
        (Condition(argument="flag", equals=True), {"flag": "true"}, False),
        (Condition(argument="flag", equals=True), {"flag": 1}, False),
        (Condition(argument="flag", equals=True), {}, False),
        (Condition(argument="flag", equals=None), {}, False),
        (Condition(argument="flag", equals=None), {"flag": None}, True),
        (Condition(argument="flag", one_of=("a", "b")), {"flag": "b"}, True),
        (Condition(argument="flag", one_of=("a", "b")), {"flag": "c"}, False),
        (Condition(argument="flag", presence="present"), {"flag": None}, True),
        (Condition(argument="flag", presence="absent"), {}, True),
        (Condition(argument="flag", presence="absent"), {"flag": None}, False),
        (Condition(argument="flag", presence="truthy"), {"flag": "x"}, True),
        (Condition(argument="flag", presence="truthy"), {"flag": 0}, False),
        (Condition(argument="flag", presence="falsy"), {}, True),
    ],
)
def test_a_role_may_depend_on_a_sibling(condition: Condition, flag: JsonObject, is_narrowed: bool) -> None:
    targets = targets_of(conditional(condition), {"path": "a", **flag}, LexicalPaths())
    assert [target.role for target in targets] == (
        ["read-path"] if is_narrowed else ["read-path", "write-path"]
    )


def test_deep_nesting_does_not_crash() -> None:
    value: Json = "a"
    for _ in range(100_000):
        value = [value]
    assert places(tool(paths=("read-path",)), {"paths": value}) == ["a"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
HOSTILE: Tool = tool(
    path=("write-path",), url=("fetch-url",), remote=("git-remote-url",), owner=("github-owner",)
)


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("path", "url", "remote", "owner"), JSON)))
def test_any_arguments_at_all_can_be_resolved(arguments: JsonObject) -> None:
    targets_of(HOSTILE, arguments, LexicalPaths())
