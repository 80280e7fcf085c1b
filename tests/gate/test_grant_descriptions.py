"""A grant covers a call only if its description, read literally, covers it."""

import json
import posixpath
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import (
    PERSON,
    ArgumentRoles,
    Call,
    Decision,
    Escalation,
    EscalationId,
    Grant,
    GrantReach,
    Json,
    JsonObject,
    Response,
    Role,
    Tool,
    call_id,
)
from holdfast.gate import covers, describe_grant, grant_description, grant_for
from holdfast.policy import LexicalPaths, contents_of, targets_of

ROLES: dict[str, tuple[Role, ...]] = {
    "source": ("read-path", "delete-path"),
    "target": ("write-path",),
    "paths": ("write-path",),
    "url": ("fetch-url",),
    "branch": ("branch-name",),
    "content": ("content",),
    "command": ("none",),
    "force": ("none",),
}
TOOL = Tool(name="box.do", roles={name: ArgumentRoles(default=roles) for name, roles in ROLES.items()})
PATHS = st.sampled_from(["a", "b", "d/a", "d/e/a", "./d//a", "/top", "/elsewhere/a"])
ARGUMENTS: st.SearchStrategy[JsonObject] = st.fixed_dictionaries(
    {},
    optional={
        "source": PATHS,
        "target": PATHS,
        "paths": st.lists(PATHS, max_size=2),
        "url": st.sampled_from(["https://h.example/a", "https://h.example/a?q=1", "https://h.example:8/a"]),
        "branch": st.sampled_from(["main", "dev"]),
        "content": st.sampled_from(["x", "y"]),
        "command": st.sampled_from(["ls", "rm"]),
        "force": st.booleans(),
    },
)


def call(arguments: JsonObject) -> Call:
    return Call(id=call_id(1, 1), operation=TOOL.name, arguments=arguments)


def granted(arguments: JsonObject, reach: GrantReach = "exact") -> Grant:
    yes = Response(verdict="approve", scope="session", reach=reach)
    grant = grant_for(question(arguments), yes, principal=PERSON, now_ms=0)
    assert grant is not None
    return grant


def question(arguments: JsonObject) -> Escalation:
    asked = call(arguments)
    return Escalation(
        id=EscalationId("e"),
        call=asked,
        decision=Decision(verdict="escalate", rule="ask", reason="because"),
        digest=asked.digest,
        tool_digest="",
        policy_digest="",
        opened_ms=0,
        expires_ms=1,
        targets=targets_of(TOOL, arguments, LexicalPaths()),
        contents=contents_of(TOOL, arguments),
    )


def is_covered(grant: Grant, arguments: JsonObject) -> bool:
    return covers(grant, call(arguments), targets_of(TOOL, arguments, LexicalPaths()))


def allowed_by_words(words: str, arguments: JsonObject) -> bool:
    """Reads the words of a grant and nothing else."""
    read = re.fullmatch(
        r"box\.do(?: on (?P<on>.*?))?(?: with (?P<held>.*?)| without arguments)?, in this session", words
    )
    assert read is not None, words
    places: dict[str, list[str]] = {}
    for argument, area in re.findall(r"(\w+) ((?:everything \w+ )?\S+) \([^)]*\)", read["on"] or ""):
        places.setdefault(argument, []).append(area)
    held = dict(each.partition("=")[::2] for each in (read["held"] or "").split(", ") if "=" in each)
    left_open = {each[4:] for each in (read["held"] or "").split(", ") if each.startswith("any ")}
    for argument, value in arguments.items():
        if argument in places:
            elements = value if isinstance(value, list) else [value]
            if not elements or not all(_lies(each, places[argument]) for each in elements):
                return False
        elif argument not in left_open and (argument not in held or json.loads(held[argument]) != value):
            return False
    return set(places) | set(held) <= set(arguments)


def _lies(value: Json, areas: list[str]) -> bool:
    assert isinstance(value, str)
    if ":" in value:
        host = "/".join(value.split("/")[:3])
        return value in areas or f"everything at {host}" in areas
    path = posixpath.normpath(posixpath.join("/workspace", value))
    folders = [area.removeprefix("everything in ") for area in areas if area.startswith("everything in ")]
    return value in areas or path in areas or any(path.startswith(f"{folder}/") for folder in folders)


@settings(deadline=None)
@given(asked=ARGUMENTS, later=ARGUMENTS, reach=st.sampled_from(["exact", "folder", "host"]))
def test_a_grant_covers_exactly_what_its_description_says(
    asked: JsonObject, later: JsonObject, reach: GrantReach
) -> None:
    grant = granted(asked, reach)
    words = describe_grant(grant)
    assert is_covered(grant, asked), words
    assert is_covered(grant, later) == allowed_by_words(words, later), words


@settings(deadline=None)
@given(asked=ARGUMENTS, data=st.data(), reach=st.sampled_from(["exact", "folder", "host"]))
def test_a_changed_argument_is_covered_only_if_the_description_leaves_it_open(
    asked: JsonObject, data: st.DataObject, reach: GrantReach
) -> None:
    grant = granted(asked, reach)
    name = data.draw(st.sampled_from(sorted(ROLES)))
    later = {**asked, name: data.draw(ARGUMENTS.filter(lambda drawn: name in drawn))[name]}
    assert is_covered(grant, later) == allowed_by_words(describe_grant(grant), later)


@pytest.mark.parametrize(
    ("asked", "later"),
    [
        ({"target": "a", "force": False}, {"target": "a", "force": True}),
        ({"target": "a", "force": False}, {"target": "a"}),
        ({"target": "a"}, {"target": "a", "force": True}),
        ({"target": "a", "branch": "main"}, {"target": "a"}),
        ({"source": "a", "target": "/top/b"}, {"source": "/top/b", "target": "a"}),
        ({"target": "a", "command": "ls"}, {"target": "a", "command": "rm"}),
        ({"content": "x"}, {"content": "y"}),
        ({"target": "a", "content": "x"}, {"content": "x"}),
        ({"target": "a", "force": True}, {"target": "a", "force": 1}),
    ],
)
@pytest.mark.parametrize("reach", ["exact", "folder"])
def test_w18_a_grant_for_a_folder_fixes_the_other_arguments(
    asked: JsonObject, later: JsonObject, reach: GrantReach
) -> None:
    assert is_covered(granted(asked, reach), asked)
    assert not is_covered(granted(asked, reach), later)


def test_written_content_is_left_open_and_described_as_open() -> None:
    grant = granted({"target": "a", "content": "x", "force": False})
    assert describe_grant(grant) == (
        "box.do on target /workspace/a (write-path) with force=false, any content, in this session"
    )
    assert is_covered(grant, {"target": "a", "content": "y", "force": False})


@pytest.mark.parametrize("url", ["not a url", "https://a b/", "file:///"])
def test_an_unresolvable_url_gets_no_grant(url: str) -> None:
    asked = question({"url": url})
    assert grant_for(asked, Response(verdict="approve", scope="session"), principal=PERSON, now_ms=0) is None
    assert grant_description(asked) == ""


def test_a_long_value_is_fixed_whole_though_shown_shortened() -> None:
    grant = granted({"command": "x" * 5_000})
    assert len(describe_grant(grant)) < 250
    assert "5,002 characters" in describe_grant(grant)
    assert is_covered(grant, {"command": "x" * 5_000})
    assert not is_covered(grant, {"command": "x" * 4_999 + "y"})
