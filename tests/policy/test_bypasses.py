"""Ways round a policy that others left open. Each test is named after the class or the fault it closes."""

from pathlib import Path

import pytest
from tests.policy.real_paths import RealPaths

from holdfast.core import ArgumentRoles, Call, Decision, Json, JsonObject, Location, Paths, Tool, call_id
from holdfast.policy import (
    KNOWN_TOOLS,
    LexicalPaths,
    PolicyDocument,
    Request,
    Rule,
    RulePolicy,
    combine,
    load_policy,
    targets_of,
)
from holdfast.policy.document import HostTest
from holdfast.policy.parser import parse_policy


def policy(rules: str, head: str = "") -> RulePolicy:
    return RulePolicy(parse_policy(f"policy: test\n{head}rules:\n{rules}", source="test.yaml"))


def judge(
    one: RulePolicy,
    operation: str,
    arguments: JsonObject,
    paths: Paths | None = None,
    tool: Tool | None = None,
) -> Decision:
    tool = tool or one.document.tools.get(operation) or KNOWN_TOOLS.get(operation)
    call = Call(id=call_id(1, 1), operation=operation, arguments=arguments)
    targets = targets_of(tool, arguments, paths or LexicalPaths()) if tool is not None else ()
    return one.judge(Request(call=call, tool=tool, targets=targets))


ALL = "  - {name: all, allow: '*'}\n"
OPEN = "  - {name: open, allow: 'world.*', inside: true}\n"


def test_w1_a_protected_path_stays_protected_inside_the_workspace(tmp_path: Path) -> None:
    own = tmp_path / "home" / ".holdfast"
    own.mkdir(parents=True)
    paths = RealPaths(tmp_path, protected=(own,))
    for given in ("home/.holdfast/policy.yaml", "home/./.holdfast", str(own / "new"), "home/x/../.holdfast"):
        decision = judge(policy(OPEN), "world.write", {"path": given, "content": ""}, paths)
        assert decision.rule == "structural-protected-path", given


def test_w2_a_dangling_symlink_is_judged_by_its_target(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "w", tmp_path / "o"
    workspace.mkdir()
    outside.mkdir()
    (workspace / "link").symlink_to(outside / "missing")
    (workspace / "vault").symlink_to(outside / "protected" / "key")
    paths = RealPaths(workspace, protected=(outside / "protected",))
    write = {"content": ""}
    assert judge(policy(OPEN), "world.write", {"path": "link", **write}, paths).verdict == "deny"
    assert (
        judge(policy(OPEN), "world.write", {"path": "vault", **write}, paths).rule
        == "structural-protected-path"
    )


def test_cve_2025_53110_a_sibling_with_the_same_prefix_is_outside(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    paths = RealPaths(tmp_path / "ws")
    assert (
        judge(policy(OPEN), "world.read", {"path": str(tmp_path / "ws-evil" / "a")}, paths).verdict == "deny"
    )
    within = policy(f"  - {{name: r, allow: world.read, within: ['{tmp_path}/ws']}}")
    assert judge(within, "world.read", {"path": str(tmp_path / "ws-evil" / "a")}, paths).verdict == "deny"
    assert judge(within, "world.read", {"path": str(tmp_path / "ws" / "a")}, paths).verdict == "allow"


def test_cve_2025_53109_a_symlink_out_of_the_workspace_is_outside(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "out").symlink_to("/etc")
    paths = RealPaths(workspace)
    assert judge(policy(OPEN), "world.read", {"path": "out/passwd"}, paths).verdict == "deny"
    assert judge(policy(OPEN), "world.write", {"path": "out/new", "content": ""}, paths).verdict == "deny"


@pytest.mark.parametrize(
    "path",
    [
        "secrets/",
        "secrets",
        "./secrets",
        "secrets//key",
        "secrets/.",
        "Secrets/Key",
        "a/../secrets/key",
        "/workspace/secrets",
    ],
)
def test_paths_a_deny_without_stars_covers_every_spelling(path: str) -> None:
    one = policy("  - {name: closed, deny: 'world.*', paths: [secrets]}\n" + OPEN)
    assert judge(one, "world.read", {"path": path}).rule == "closed"


def test_paths_deleting_or_moving_a_folder_counts_for_what_a_deny_holds_beneath_it() -> None:
    one = policy("  - {name: closed, deny: 'world.*', paths: ['src/secret/**']}\n" + OPEN)
    for path in ("src", "src/secret", "SRC", "."):
        assert judge(one, "world.delete", {"path": path, "recursive": True}).rule == "closed", path
        assert judge(one, "world.move", {"source": path, "destination": "x"}).rule == "closed", path
    assert judge(one, "world.delete", {"path": "srcs"}).rule == "open"


def test_paths_moving_or_copying_a_folder_reads_what_a_deny_of_reading_holds_beneath_it() -> None:
    tools = "tools: {fs.copy: {source: read-path, target: write-path}}\n"
    one = policy("  - {name: closed, deny: '*', roles: [read-path], paths: ['src/secret/**']}\n" + ALL, tools)
    for path in ("src", "src/secret", "SRC", "."):
        assert judge(one, "world.move", {"source": path, "destination": "x"}).rule == "closed", path
        assert judge(one, "fs.copy", {"source": path, "target": "x"}).rule == "closed", path
    assert judge(one, "world.move", {"source": "srcs", "destination": "x"}).rule == "all"
    assert judge(one, "world.move", {"source": "a", "destination": "src"}).rule == "all"
    assert judge(one, "world.entries", {"path": "src"}).rule == "all", (
        "the names in a folder are not its files"
    )
    assert judge(one, "world.delete", {"path": "src", "recursive": True}).rule == "all"


def test_paths_moving_a_folder_writes_what_a_deny_of_writing_holds_beneath_its_new_place() -> None:
    one = policy("  - {name: closed, deny: '*', roles: [write-path], paths: ['.github/workflows']}\n" + ALL)
    assert judge(one, "world.move", {"source": "mine", "destination": ".github"}).rule == "closed"
    assert judge(one, "world.move", {"source": "mine", "destination": ".github/x"}).rule == "all"
    assert judge(one, "world.make_folder", {"path": ".github"}).rule == "all"


def test_paths_a_question_about_something_in_a_folder_lifts_no_deny_of_the_folder() -> None:
    ask = "  - {name: ask, escalate: 'world.*', paths: [src/secret]}\n"
    calls: list[tuple[str, JsonObject]] = [
        ("world.delete", {"path": "src", "recursive": True}),
        ("world.move", {"source": "src", "destination": "src/secret/x"}),
    ]
    for operation, arguments in calls:
        assert judge(policy(ask), operation, arguments).rule == "default-deny"
        assert judge(policy(ask + OPEN), operation, arguments).rule == "ask"


def test_paths_deleting_a_folder_counts_for_a_folder_that_a_deny_names_beneath_it() -> None:
    tools = "tools: {fs.remove: {path: delete-path}}\n"
    one = policy("  - {name: closed, deny: fs.remove, within: [/data/keep]}\n" + ALL, tools)
    for path in ("/", "/data", "/data/", "/data/keep", "/data/keep/a"):
        assert judge(one, "fs.remove", {"path": path}).rule == "closed", path
    for path in ("/data/other", "/data/keeper", "/dat"):
        assert judge(one, "fs.remove", {"path": path}).rule == "all", path


def test_paths_the_two_forms_of_an_accent_are_one_name_to_a_deny() -> None:
    one = policy("  - {name: closed, deny: 'world.*', paths: ['caf\u00e9/**']}\n" + OPEN)
    assert judge(one, "world.read", {"path": "cafe\u0301/menu"}).rule == "closed"


@pytest.mark.parametrize(
    "path", ["a\0b", "..\\..\\etc", "\\\\?\\C:\\x", "\\??\\C:\\x", "\\\\host\\share", ""]
)
def test_paths_an_invalid_path_is_denied(path: str) -> None:
    assert judge(policy(OPEN), "world.read", {"path": path}).verdict == "deny"


@pytest.mark.parametrize(
    "path", ["/proc/self/root/etc/passwd", "/dev/fd/3", "../../etc/passwd", "//etc/passwd"]
)
def test_paths_outside_are_outside_by_any_road(path: str) -> None:
    assert judge(policy(OPEN), "world.read", {"path": path}).verdict == "deny"


@pytest.mark.parametrize("path", ["C:\\x", "C:/x", "C:x"])
def test_globs_never_match_a_drive(path: str) -> None:
    location = Location(given=path, real=f"/w/{path}", inside=path)

    class Trusting(LexicalPaths):
        def locate(self, given: str) -> Location:
            return location

        def closed_below(self, location: Location) -> str | None:
            return None

    one = policy("  - {name: r, allow: world.read, paths: ['**', '**/*', '*']}")
    assert judge(one, "world.read", {"path": path}, Trusting()).verdict == "deny"


def test_globs_a_single_segment_does_not_match_at_depth() -> None:
    one = policy("  - {name: r, allow: world.read, paths: ['build/**']}")
    assert judge(one, "world.read", {"path": "build/a"}).verdict == "allow"
    assert judge(one, "world.read", {"path": "src/build/a"}).verdict == "deny"


def test_globs_an_apex_is_covered_and_a_lookalike_is_not() -> None:
    one = policy("  - {name: r, allow: net.fetch, hosts: ['*.example.com']}")
    assert judge(one, "net.fetch", {"url": "https://example.com/"}).verdict == "allow"
    assert judge(one, "net.fetch", {"url": "https://notexample.com/"}).verdict == "deny"


def test_w23_a_rule_that_names_no_host_does_not_open_the_local_network() -> None:
    one = policy("  - {name: r, allow: net.fetch}")
    assert judge(one, "net.fetch", {"url": "https://example.com/"}).verdict == "allow"
    for url in ("http://localhost/", "http://169.254.169.254/", "http://127.0.0.1.nip.io/", "not a url"):
        assert judge(one, "net.fetch", {"url": url}).rule == "structural-domain-escalate"
    named = policy("  - {name: r, allow: net.fetch, hosts: [localhost]}")
    assert judge(named, "net.fetch", {"url": "http://localhost:8000/"}).verdict == "allow"


def test_w23_an_empty_list_of_hosts_is_not_every_host() -> None:
    one = policy("  - {name: r, allow: net.fetch}", "hosts: {net: []}\n")
    assert judge(one, "net.fetch", {"url": "https://example.com/"}).verdict == "escalate"


def test_w23_naming_hosts_to_fetch_from_names_none_to_push_to() -> None:
    both = Tool(
        name="git.mirror",
        roles={
            "source": ArgumentRoles(default=("fetch-url",)),
            "target": ArgumentRoles(default=("git-remote-url",)),
        },
    )
    rule = Rule(
        name="r",
        verdict="allow",
        roles=("fetch-url", "git-remote-url"),
        hosts=HostTest(roles=("fetch-url",), patterns=("example.com",)),
    )
    one = RulePolicy(PolicyDocument(name="p", rules=(rule,)))
    arguments: JsonObject = {"source": "https://example.com/", "target": "https://localhost/r"}
    assert judge(one, "git.mirror", arguments, tool=both).verdict == "escalate"


def test_precedence_an_unresolved_argument_is_denied() -> None:
    one = policy("  - {name: r, allow: '*'}")
    call = Call(id=call_id(1, 1), operation="world.read", arguments={"path": "/etc/passwd"})
    assert one.judge(Request(call=call, tool=KNOWN_TOOLS["world.read"])).rule == "invalid-arguments"


def test_precedence_a_lower_tier_cannot_allow_what_a_higher_one_asks_about() -> None:
    managed = policy("  - {name: ask, escalate: '*'}")
    user = policy("  - {name: all, allow: '*'}")
    request = Request(
        call=Call(id=call_id(1, 1), operation="world.list", arguments={}), tool=KNOWN_TOOLS["world.list"]
    )
    assert combine(managed, user).judge(request).verdict == "escalate"
    assert combine(user, managed).judge(request).verdict == "escalate"


def test_precedence_an_approved_call_of_a_staging_tier_is_still_staged() -> None:
    asking = policy("  - {name: ask, escalate: '*'}")
    staging = policy("  - {name: stage, stage: 'world.*'}")
    call = Call(id=call_id(1, 1), operation="world.list", arguments={})
    decision = combine(asking, staging).judge(Request(call=call, tool=KNOWN_TOOLS["world.list"]))
    assert (decision.verdict, decision.is_staged) == ("escalate", True)


def test_precedence_an_empty_policy_allows_nothing() -> None:
    assert judge(policy("  []"), "world.read", {"path": "a"}).rule == "default-deny"
    with pytest.raises(ValueError, match="at least one"):
        combine()


def test_precedence_a_test_on_an_argument_that_is_missing_is_not_passed() -> None:
    unbounded = Tool(name="llm.complete", roles={"prompt": ArgumentRoles(default=("none",))})
    one = policy("  - {name: r, allow: llm.complete, arguments: {max_tokens: {at_most: 10}}}")
    assert judge(one, "llm.complete", {"prompt": "x"}, tool=unbounded).verdict == "deny"
    values: list[Json] = [11, "5", True, None, -float("inf"), [5]]
    for value in values:
        decision = judge(one, "llm.complete", {"prompt": "x", "max_tokens": value}, tool=unbounded)
        assert decision.verdict == "deny", value


def test_mcp_a_tool_without_roles_is_denied_whatever_the_rules() -> None:
    one = policy("  - {name: r, allow: '*'}")
    decision = judge(one, "fs.read", {"path": "a"}, tool=Tool(name="fs.read"))
    assert decision.rule == "missing-annotation"
    assert "holdfast mcp annotate" in decision.reason, "and how to change that is said"
    assert not one.could_allow(Tool(name="fs.read"))


def test_mcp_an_argument_the_schema_does_not_name_is_denied() -> None:
    one = policy("  - {name: r, allow: '*'}")
    assert judge(one, "world.read", {"path": "a", "pth": "/etc/passwd"}).rule == "invalid-arguments"


def test_mcp_a_tool_of_the_same_name_on_another_server_is_another_tool() -> None:
    one = policy("  - {name: r, allow: fs.read}")
    squatter = Tool(name="evil.read", roles={})
    assert judge(one, "evil.read", {}, tool=squatter).verdict == "deny"
    assert judge(one, "fs.read", {}, tool=squatter).rule == "structural-unknown-tool"


def test_the_seed_policies_run_no_command() -> None:
    for name in ("safe-analysis", "safe-edit"):
        assert judge(load_policy(name), "shell.run", {"argv": ["ls"]}).verdict == "deny"


def test_w27_our_own_policies_ask_before_history_is_rewritten() -> None:
    reset = Tool(name="git.reset", roles={"path": ArgumentRoles(default=("write-history",))})
    assert judge(load_policy("project"), "git.reset", {"path": "."}, tool=reset).verdict == "escalate"


MAIL = """tools:
  mail.send: {files: read-path, to: email-address, shares: share-permission}
  vcs.push: {repository: read-path, remote: git-remote-url, branch: branch-name}
"""


def test_precedence_a_harmless_value_beside_it_does_not_lift_a_deny() -> None:
    rules = "  - {name: leak, deny: mail.send, paths: [secrets], names: {email-address: [e@evil.example]}}\n"
    one = policy(rules + ALL, MAIL)
    secret, evil = ["secrets/key"], ["e@evil.example"]
    for files, to in (
        (secret, evil),
        (["a", *secret], evil),
        (secret, ["b@c.example", *evil]),
        (["a", *secret], ["b@c.example", *evil]),
    ):
        assert judge(one, "mail.send", {"files": [*files], "to": [*to]}).rule == "leak", (files, to)
    assert judge(one, "mail.send", {"files": ["a"], "to": [*evil]}).rule == "all"


def test_precedence_a_harmless_value_beside_it_does_not_pass_an_allow() -> None:
    rules = "  - {name: mine, allow: mail.send, paths: ['*'], names: {email-address: [me@x.example]}}\n"
    one = policy(rules, MAIL)
    assert judge(one, "mail.send", {"files": ["a"], "to": ["me@x.example"]}).verdict == "allow"
    assert judge(one, "mail.send", {"files": ["a"], "to": ["me@x.example", "e@x.example"]}).verdict == "deny"


def test_precedence_a_deny_of_what_is_never_judged_by_itself_holds_beside_paths_and_hosts() -> None:
    rules = (
        "  - {name: no-main, deny: vcs.push, names: {branch-name: [main]}}\n"
        "  - {name: no-share, escalate: mail.send, roles: [share-permission]}\n"
    )
    one = policy(rules + ALL, MAIL)
    push: JsonObject = {"repository": ".", "remote": "https://github.com/a/b"}
    assert judge(one, "vcs.push", {**push, "branch": "main"}).rule == "no-main"
    assert judge(one, "vcs.push", {**push, "branch": "Main"}).rule == "no-main"
    assert judge(one, "vcs.push", {**push, "branch": ["mine", "main"]}).rule == "no-main"
    assert judge(one, "vcs.push", {**push, "branch": "mine"}).rule == "all"
    assert judge(one, "mail.send", {"files": ["a"], "shares": ["anyone"]}).rule == "no-share"
    assert judge(one, "mail.send", {"files": ["a"]}).rule == "all"


def test_precedence_a_question_about_some_of_the_values_lifts_no_deny() -> None:
    ask = "  - {name: ask, escalate: mail.send, paths: [reports], names: {email-address: [boss@x.example]}}\n"
    files: JsonObject = {"files": ["reports/may"]}
    boss, both = "boss@x.example", ["boss@x.example", "e@evil.example"]
    alone = policy(ask + "  - {name: to, allow: mail.send, roles: [email-address]}\n", MAIL)
    assert judge(alone, "mail.send", {**files, "to": [boss]}).verdict == "escalate"
    assert judge(alone, "mail.send", {**files, "to": [*both]}).rule == "default-deny"
    before = policy(ask + ALL, MAIL)
    assert judge(before, "mail.send", {**files, "to": [*both]}).rule == "ask"
    branch = policy("  - {name: ask, escalate: vcs.push, names: {branch-name: [main]}}\n", MAIL)
    push: JsonObject = {"repository": ".", "remote": "https://evil.example/a", "branch": "main"}
    assert judge(branch, "vcs.push", push).rule == "default-deny"


def test_precedence_what_is_proposed_for_one_value_is_not_done_for_two() -> None:
    rules = (
        "  - {name: propose, stage: mail.send, names: {email-address: [a@x.example]}, roles: [read-path]}\n"
    )
    one = policy(rules + ALL, MAIL)
    for to in (["a@x.example"], ["a@x.example", "b@x.example"]):
        assert judge(one, "mail.send", {"files": ["a"], "to": [*to]}).rule == "propose"
    assert judge(one, "mail.send", {"files": ["a"], "to": ["b@x.example"]}).rule == "all"
