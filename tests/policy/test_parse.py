"""Policies in YAML: what they say, and errors that name the place."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import Call, Decision, JsonObject, call_id
from holdfast.core.errors import InvalidPolicy
from holdfast.policy import (
    KNOWN_TOOLS,
    PROJECT_POLICY,
    LexicalPaths,
    Request,
    RulePolicy,
    load_policy,
    narrowed_by_project,
    targets_of,
)
from holdfast.policy.parser import parse_policy


def policy(rules: str, head: str = "") -> RulePolicy:
    return RulePolicy(parse_policy(f"policy: test\n{head}rules:\n{rules}", source="test.yaml"))


def judge(one: RulePolicy, operation: str, arguments: JsonObject) -> Decision:
    tool = one.document.tools.get(operation) or KNOWN_TOOLS[operation]
    call = Call(id=call_id(1, 1), operation=operation, arguments=arguments)
    return one.judge(Request(call=call, tool=tool, targets=targets_of(tool, arguments, LexicalPaths())))


ERRORS = [
    ("", 1, 1, "is empty"),
    ("policy: x\n  rules: y", 2, 8, "is not valid YAML: mapping values are not allowed"),
    ("- a", 1, 1, "expected a mapping, found a list"),
    ("rules: []", 1, 1, "needs a name"),
    ("policy: x", 1, 1, "needs rules"),
    ("policy: x\nrules: []\nrulez: []", 3, 1, "no field 'rulez'; expected one of policy"),
    ("policy: x\npolicy: y\nrules: []", 2, 1, "is repeated"),
    ("policy: no\nrules: []", 1, 9, "expected text, found true or false"),
    ("policy: x\nrules:\n  - name: r\n", 3, 5, "one of deny, escalate, stage and allow"),
    ("policy: x\nrules:\n  - allow: a.b\n    deny: a.b\n    name: r", 3, 5, "one of deny"),
    ("policy: x\nrules:\n  - allow: a.b\n", 3, 5, "needs a name"),
    ("policy: x\nrules:\n  - {name: r, allow: 'a b'}", 3, 22, "is not an operation pattern"),
    ("policy: x\nrules:\n  - {name: r, allow: a.b, path: x}", 3, 27, "no field 'path'"),
    (
        "policy: x\nrules:\n  - {name: r, allow: a.b, roles: [reed-path]}",
        3,
        35,
        "is not a role; expected one of read-path",
    ),
    ("policy: x\nrules:\n  - {name: r, allow: a.b, paths: [/etc]}", 3, 35, "use `within`"),
    ("policy: x\nrules:\n  - {name: r, allow: a.b, paths: ['!a']}", 3, 35, "deny rule"),
    ("policy: x\nrules:\n  - {name: r, allow: a.b, within: [etc]}", 3, 36, "is not an absolute folder"),
    ("policy: x\nrules:\n  - {name: r, allow: a.b, within: ['{A}']}", 3, 36, "without a value"),
    ("policy: x\nrules:\n  - {name: r, allow: a.b, hosts: ['http://x']}", 3, 35, "is not a host pattern"),
    (
        "policy: x\nrules:\n  - {name: r, allow: a.b, inside: 3}",
        3,
        35,
        "expected true or false, found a number",
    ),
    (
        "policy: x\nrules:\n  - {name: r, allow: a.b, arguments: {n: {above: 3}}}",
        3,
        43,
        "expected one of equals, one_of, prefix",
    ),
    (
        "policy: x\nrules:\n  - {name: r, allow: a.b, arguments: {n: {at_most: x}}}",
        3,
        52,
        "expected a number",
    ),
    (
        "policy: x\nrules:\n  - {name: r, allow: a.b, wait_for: 60}",
        3,
        27,
        "a rule that answers allow does not wait",
    ),
    ("policy: x\nrules:\n  - {name: r, escalate: a.b, wait_for: 0}", 3, 40, "expected a number of seconds"),
    (
        "policy: x\nrules:\n  - {name: r, escalate: a.b, wait_for: soon}",
        3,
        40,
        "expected a number of seconds",
    ),
    ("policy: x\nrules:\n  - {name: r, allow: a.b}\n  - {name: r, deny: a.c}", 4, 5, "already has the name"),
    ("policy: x\nrules: &a []\ndescription: *a", 2, 8, "anchors"),
    ("policy: x\nrules: []\ndescription: !!python/object:os.system x", 3, 14, "expected text"),
    ("policy: x\nrules: []\ntools: {a.b: {path: [read-pth]}}", 3, 22, "is not a role"),
    ("policy: x\nrules: []\ntools: {world.write: {path: none}}", 3, 9, "already has argument roles"),
    ("policy: x\nrules: []\ntools: {a.b: {path: {when: []}}}", 3, 21, "expected `default:`"),
    ("policy: ' '\nrules: []", 1, 9, "expected a name"),
    ("policy: x\nrules: !!set {a}", 2, 8, "expected a list"),
    ("policy: x\nrules:\n  - !mine {name: r, allow: a.b}", 3, 5, "expected no tag"),
    ("policy: x\nrules: !mine []", 2, 8, "expected no tag"),
    ("policy: x\nrules:\n  - {name: '', allow: a.b}", 3, 12, "expected a name"),
    ("policy: x\nrules:\n  - {name: r, deny: w\u043erld.read}", 3, 21, "is not an operation pattern"),
    ("policy: x\nrules:\n  - {name: r, deny: a.b, inside: false}", 3, 34, "has no effect"),
    ("policy: x\nrules:\n  - {name: r, allow: a.b, arguments: {n: {at_most: .nan}}}", 3, 52, "a number"),
    ("policy: x\nrules:\n  - {name: r, allow: a.b, arguments: {n: {at_most: 1e999}}}", 3, 52, "a number"),
    *(
        (f"policy: x\nrules:\n  - {{name: r, {rest}}}", 3, 15 + len(rest) - at, "at least one")
        for rest, at in (
            ("deny: []", 2),
            ("deny: a.b, paths: []", 2),
            ("deny: a.b, within: []", 2),
            ("deny: a.b, hosts: []", 2),
            ("allow: a.b, roles: []", 2),
            ("allow: a.b, names: {}", 2),
            ("allow: a.b, names: {github-owner: []}", 3),
            ("allow: a.b, arguments: {}", 2),
            ("allow: a.b, arguments: {n: {one_of: []}}", 4),
        )
    ),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), ERRORS)
def test_an_error_names_line_and_column_and_what_was_expected(
    text: str, line: int, column: int, words: str
) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse_policy(text, source="p.yaml")
    assert words in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)
    assert str(caught.value).startswith(f"p.yaml:{line}:{column}: ")


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_a_policy_or_a_clear_error(text: str) -> None:
    with pytest.raises(InvalidPolicy):
        parse_policy(text, source="p.yaml")


FRAGMENTS = st.sampled_from(
    [
        "policy: x\n",
        "rules:\n",
        "  - name: r\n",
        "    allow: a.b\n",
        "    paths: [a]\n",
        "    deny: [x]\n",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "*a",
        "&a ",
        "? ",
        ": ",
        "!!set ",
        "\t",
        "  ",
        "null\n",
        "1e999\n",
        "2001-01-01\n",
        "'",
    ]
)


@settings(deadline=None)
@given(st.lists(FRAGMENTS, max_size=12))
def test_pieces_of_policies_in_any_order_never_crash_the_parser(pieces: list[str]) -> None:
    with contextlib.suppress(InvalidPolicy):
        parse_policy("".join(pieces), source="p.yaml")


def test_deny_beats_allow_in_any_order() -> None:
    one = policy("  - {name: a, allow: '*'}\n  - {name: d, deny: world.read, paths: [secret]}")
    assert judge(one, "world.read", {"path": "secret/key"}).rule == "d"
    assert judge(one, "world.read", {"path": "open"}).rule == "a"


def test_among_the_others_the_first_that_matches_decides() -> None:
    one = policy(
        "  - {name: e, escalate: world.read, paths: [a]}\n  - {name: a, allow: world.read, paths: ['**']}"
    )
    assert judge(one, "world.read", {"path": "a"}).verdict == "escalate"
    assert judge(one, "world.read", {"path": "b"}).verdict == "allow"


def test_a_decision_points_at_the_line_of_its_rule() -> None:
    one = policy("  - name: a\n    allow: world.read\n    because: it is fine")
    decision = judge(one, "world.read", {"path": "a"})
    assert (decision.source, decision.reason) == ("test.yaml:3", "it is fine")


def test_a_refusal_says_what_to_do_instead() -> None:
    one = policy("  - {name: d, deny: world.delete, because: nothing is deleted, instead: move it to attic}")
    assert judge(one, "world.delete", {"path": "a"}).reason == "nothing is deleted; instead: move it to attic"


def test_g26_a_world_that_is_read_only_says_so_whatever_the_path() -> None:
    one = policy(
        "  - {name: ro, deny: '*', roles: [write-path, delete-path], because: World is read-only}\n"
        "  - {name: w, allow: 'world.*', paths: ['**/*']}",
        "operations: {allow: ['world.*']}\n",
    )
    for operation, arguments in (
        ("world.write", {"path": "src/a", "content": ""}),
        ("world.write", {"path": ".env", "content": ""}),
        ("world.delete", {"path": "src/a"}),
        ("world.move", {"source": "a", "destination": "b"}),
    ):
        assert judge(one, operation, {**arguments}).reason == "World is read-only"


def test_g28_deleting_is_checked_like_writing() -> None:
    one = policy("  - {name: w, stage: [world.write, world.delete], paths: ['src/**/*']}")
    assert judge(one, "world.delete", {"path": "src/a"}).verdict == "stage"
    assert judge(one, "world.delete", {"path": "src"}).verdict == "deny"
    assert judge(one, "world.delete", {"path": "lib/a"}).verdict == "deny"


def test_the_hosts_of_a_group_and_trusted_groups_can_be_given() -> None:
    one = policy(
        "  - {name: a, allow: 'net.*'}",
        "hosts: {net: ['*.example.com']}\ntrusted: [memory]\n",
    )
    assert judge(one, "net.fetch", {"url": "https://api.example.com/"}).verdict == "allow"
    assert judge(one, "net.fetch", {"url": "https://example.org/"}).rule == "structural-domain-escalate"
    assert one.document.trusted_groups == ("memory",)


def test_tools_can_be_annotated_with_conditions() -> None:
    tools = """\
tools:
  fs.edit:
    path:
      default: [read-path, write-path]
      when:
        - {argument: dryRun, equals: true, roles: [read-path]}
    dryRun: none
"""
    one = policy("  - {name: r, allow: 'fs.*', roles: [read-path], inside: true}", tools)
    assert judge(one, "fs.edit", {"path": "a", "dryRun": True}).verdict == "allow"
    assert judge(one, "fs.edit", {"path": "a", "dryRun": False}).verdict == "deny"


def test_names_have_to_be_on_the_list_all_of_them() -> None:
    tools = "tools: {hub.branch: {owner: github-owner, repo: github-repo}, mail.send: {to: email-address}}\n"
    one = policy(
        "  - {name: b, allow: hub.branch, names: {github-owner: [acme], github-repo: [api]}}\n"
        "  - {name: m, allow: mail.send, names: {email-address: ['*@example.com']}}",
        tools,
    )
    assert judge(one, "hub.branch", {"owner": "acme", "repo": "api"}).verdict == "allow"
    assert judge(one, "hub.branch", {"owner": "acme", "repo": "web"}).verdict == "deny"
    assert judge(one, "hub.branch", {"owner": "acme"}).verdict == "deny"
    assert judge(one, "mail.send", {"to": ["a@example.com", "b@EXAMPLE.com"]}).verdict == "allow"
    assert judge(one, "mail.send", {"to": ["a@example.com", "b@evil.example"]}).verdict == "deny"
    assert judge(one, "mail.send", {"to": "a@evil.example,b@example.com"}).verdict == "deny"


def test_a_file_is_loaded_with_its_values_and_its_examples_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    text = "policy: mine\nrules:\n  - name: r\n    allow: world.read\n    within: ['{DATA}']\n"
    file.write_text(text)
    assert load_policy(str(file), values={"DATA": str(tmp_path)}).name == "mine"
    assert load_policy("mine", search=[tmp_path], values={"DATA": str(tmp_path)}).name == "mine"
    file.write_text(text + "    examples:\n      matches:\n        - world.read: {path: a}\n")
    with pytest.raises(InvalidPolicy, match="does not match this example") as caught:
        load_policy(str(file), values={"DATA": str(tmp_path)})
    assert (caught.value.line, caught.value.column) == (8, 11)


@pytest.mark.parametrize("reference", ["nobody", "/nowhere/policy.yaml", "./nowhere.json"])
def test_a_missing_policy_is_reported(reference: str) -> None:
    with pytest.raises(InvalidPolicy):
        load_policy(reference)


RULE = '{"name": "r", "if": {}, "then": "allow"}'
COMPILED_ERRORS = [
    ("", 1, 1, "is not valid JSON"),
    ('{\n "rules": [}', 2, 12, "is not valid JSON"),
    ("[]", 1, 1, "Expected `object`, got `array`"),
    ('{"rules": 3}', 1, 11, "Expected `array`, got `int`"),
    ('{"rules": [\n  ' + RULE + ',\n  {"name": "r"}]}', 3, 3, "missing required field `if`"),
    ('{"rules": [\n{"name": "r", "if": {"pahts": 1}, "then": "allow"}]}', 2, 21, "unknown field `pahts`"),
    ('{"rules": [\n{"name": "r", "if": {}, "then": "maybe"}]}', 2, 33, "Invalid enum value 'maybe'"),
    (
        '{"rules": [\n{"name":"r","if":{"paths":{"roles":["read-path"],"within":"x"}},"then":"deny"}]}',
        2,
        1,
        "is not an absolute folder",
    ),
    (
        '{"rules": [\n{"name":"r","if":{"domains":{"roles":["fetch-url"],"allowed":["a b"]}},"then":"deny"}]}',
        2,
        1,
        "is not a host pattern",
    ),
    *(
        (
            f'{{"rules": [\n{{"name":"r","then":"allow","if":{{{start}[]{end}}}}}]}}',
            2,
            34 + len(start),
            "length >= 1",
        )
        for start, end in (
            ('"server":', ""),
            ('"tool":', ""),
            ('"roles":', ""),
            ('"paths":{"within":"/x","roles":', "}"),
            ('"domains":{"allowed":["*"],"roles":', "}"),
            ('"lists":[{"allowed":["*"],"matchType":"emails","roles":', "}]"),
        )
    ),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), COMPILED_ERRORS)
def test_a_broken_compiled_policy_is_refused_with_its_place(
    text: str, line: int, column: int, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "compiled-policy.json"
    file.write_text(text)
    with pytest.raises(InvalidPolicy) as caught:
        load_policy(str(file))
    assert words in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)


@pytest.mark.parametrize(
    "nested",
    [
        "[" * 100_000,
        "{a: " * 50_000,
        "\n" + "".join(f"{'  ' * level}-\n" for level in range(1, 2_000)),
        "- " * 50_000,
    ],
    ids=["lists", "mappings", "lines", "dashes"],
)
def test_endless_nesting_is_refused_without_a_crash(nested: str) -> None:
    """The parser has no limit of its own: a project that brings such a file would end the process."""
    with pytest.raises(InvalidPolicy, match=r"nested more than 64|not valid YAML"):
        parse_policy(f"policy: p\nrules: {nested}", source="p.yaml")


def test_a_pattern_without_end_is_refused_at_once() -> None:
    pattern = "*a" * 100_000
    with pytest.raises(InvalidPolicy, match="at most 1,024 characters"):
        parse_policy(f"policy: p\nrules: [{{name: r, allow: '*', paths: ['{pattern}']}}]", source="p.yaml")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"policy: x\nrules: [\xff]\n", "2:9"),
        (b"policy: x\nrules: [\0]\n", "2:9"),
        ("policy: ä\nrules: [\x07]\n".encode(), "2:9"),
    ],
)
def test_bytes_that_are_not_utf_8_are_reported_by_line_and_column(
    content: bytes, place: str, tmp_path: Path
) -> None:
    file = tmp_path / "p.yaml"
    file.write_bytes(content)
    with pytest.raises(InvalidPolicy, match=f"p.yaml:{place}: "):
        load_policy(str(file))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_policy_must_be_a_regular_file_and_a_pipe_does_not_block(kind: str, tmp_path: Path) -> None:
    file = tmp_path / PROJECT_POLICY
    file.parent.mkdir()
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case _:
            file.mkdir()
    with pytest.raises(InvalidPolicy, match="cannot be read"):
        load_policy(str(file))
    with pytest.raises(InvalidPolicy, match="cannot be read"):
        narrowed_by_project(load_policy("project"), tmp_path)


def test_a_project_that_says_nothing_narrows_nothing(tmp_path: Path) -> None:
    policy = load_policy("project")
    assert narrowed_by_project(policy, tmp_path) is policy
