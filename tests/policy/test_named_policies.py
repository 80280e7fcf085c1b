"""The policies that come with Holdfast."""

from typing import get_args

import pytest

from holdfast.core import ArgumentRoles, Call, Decision, JsonObject, Role, SandboxTier, Tool, Verdict, call_id
from holdfast.policy import (
    LexicalPaths,
    Request,
    lint,
    load_policy,
    named_policies,
    targets_of,
)
from holdfast.policy.analysis.examples import check_examples, judge_example
from holdfast.policy.document import Example


def judge(policy: str, operation: str, arguments: JsonObject, tier: SandboxTier = "full") -> Decision:
    return judge_example(load_policy(policy), Example(operation=operation, arguments=arguments, tier=tier))


def write(path: str) -> JsonObject:
    return {"path": path, "content": ""}


@pytest.mark.parametrize("name", named_policies())
def test_every_named_policy_loads_and_meets_its_examples(name: str) -> None:
    policy = load_policy(name)
    assert policy.name == name
    check_examples(policy)


CASES: list[tuple[str, str, JsonObject, Verdict]] = [
    ("safe-analysis", "world.read", {"path": "src/a.ts"}, "allow"),
    ("safe-analysis", "world.read", {"path": ".env"}, "deny"),
    ("safe-analysis", "world.read", {"path": "/etc/passwd"}, "deny"),
    ("safe-analysis", "world.list", {}, "allow"),
    ("safe-analysis", "world.search", {"query": "x"}, "allow"),
    ("safe-analysis", "world.fingerprint", {}, "allow"),
    ("safe-analysis", "world.fingerprint", {"path": ".git/config"}, "deny"),
    ("safe-analysis", "world.stat", {"path": "../x"}, "deny"),
    ("safe-analysis", "world.write", write("src/a.ts"), "deny"),
    ("safe-analysis", "world.delete", {"path": "src/a.ts"}, "deny"),
    ("safe-analysis", "world.move", {"source": "a", "destination": "b"}, "deny"),
    ("safe-analysis", "llm.complete", {"prompt": "p"}, "allow"),
    ("safe-analysis", "llm.complete", {"prompt": "p", "max_tokens": 4000}, "allow"),
    ("safe-analysis", "llm.complete", {"prompt": "p", "max_tokens": 4001}, "deny"),
    ("safe-analysis", "net.fetch", {"url": "https://example.com/"}, "deny"),
    ("safe-analysis", "shell.run", {"argv": ["ls"]}, "deny"),
    ("safe-analysis", "net.connect", {"host": "packages.example", "port": 443}, "deny"),
    ("safe-analysis", "llm.intent", {"intent": "tidy"}, "allow"),
    ("safe-analysis", "llm.intent", {"intent": "tidy", "max_tokens": 4001}, "deny"),
    ("safe-analysis", "session.commit_proposals", {}, "escalate"),
    ("safe-analysis", "world.exec", {"command": "ls"}, "deny"),
    ("safe-analysis", "subeval", {}, "allow"),
    ("safe-analysis", "fact?", {}, "allow"),
    ("safe-edit", "world.read", {"path": "src/a.ts"}, "allow"),
    ("safe-edit", "world.write", write("src/a.ts"), "stage"),
    ("safe-edit", "world.append", write("test/x"), "stage"),
    ("safe-edit", "world.write", write("lib/a.ts"), "deny"),
    ("safe-edit", "world.write", write("src/a/.git/hooks/pre-commit"), "deny"),
    ("safe-edit", "world.delete", {"path": "src/a.ts"}, "deny"),
    ("safe-edit", "shell", {"command": "ls"}, "deny"),
    ("safe-edit", "shell.run", {"argv": ["ls"]}, "deny"),
    ("safe-edit", "llm.intent", {"intent": "tidy"}, "allow"),
    ("safe-edit", "session.commit_proposals", {}, "escalate"),
    ("safe-edit", "session.rollback_proposals", {}, "allow"),
    ("safe-edit", "memo", {}, "allow"),
    ("ask-always", "world.read", {"path": "a"}, "escalate"),
    ("ask-always", "world.write", write("/etc/x"), "escalate"),
    ("ask-always", "net.fetch", {"url": "http://localhost/"}, "escalate"),
    ("ask-always", "memo", {}, "allow"),
    ("ask-always", "shell.run", {"argv": ["ls"]}, "escalate"),
    ("ask-always", "session.commit_proposals", {}, "escalate"),
    ("project", "world.read", {"path": "a/.env"}, "allow"),
    ("project", "world.read", {"path": "../a"}, "escalate"),
    ("project", "world.fingerprint", {"path": "/etc/hosts"}, "escalate"),
    ("project", "world.write", write("a"), "stage"),
    ("project", "world.delete", {"path": "a"}, "stage"),
    ("project", "world.move", {"source": "a", "destination": "b"}, "stage"),
    ("project", "world.move", {"source": "a", "destination": "../b"}, "deny"),
    ("project", "world.move", {"source": "../a", "destination": "b"}, "deny"),
    ("project", "world.write", write("/etc/x"), "deny"),
    ("project", "net.fetch", {"url": "https://example.com/"}, "escalate"),
    ("project", "net.fetch", {"url": "http://169.254.169.254/"}, "escalate"),
    ("project", "shell.run", {"argv": ["ls"]}, "allow"),
    ("project", "shell.run", {"script": "rm -rf $HOME; curl x | sh"}, "allow"),
    ("project", "shell.run", {"argv": ["git", "commit", "-m", "git push"]}, "allow"),
    ("project", "shell.run", {"argv": ["git", "push"]}, "deny"),
    ("project", "shell.run", {"script": "make && npm publish"}, "deny"),
    ("project", "shell.run", {"script": "x=$(git push)"}, "deny"),
    ("project", "shell.start", {"argv": ["npm", "run", "dev"]}, "allow"),
    ("project", "shell.write", {"process": "p1", "input": "x"}, "allow"),
    ("project", "net.connect", {"host": "packages.example", "port": 443}, "allow"),
    ("project", "net.connect", {"host": "example.com", "port": 443}, "escalate"),
    ("project", "net.connect", {"host": "127.0.0.1", "port": 22}, "escalate"),
    ("safe-analysis", "git.propose", {}, "deny"),
    ("safe-edit", "git.push", {"url": "https://git.example.com/a", "branch": "main"}, "deny"),
    ("ask-always", "git.propose", {}, "escalate"),
    ("project", "git.propose", {}, "allow"),
    ("project", "git.push", {"url": "https://git.example.com/a", "branch": "main"}, "escalate"),
    ("project", "git.push", {"url": "origin", "branch": "main"}, "escalate"),
    ("scratch", "git.propose", {}, "allow"),
    ("scratch", "git.push", {"url": "https://git.example.com/a", "branch": "main"}, "escalate"),
    ("scratch", "shell.run", {"argv": ["ls"]}, "allow"),
    ("scratch", "shell.run", {"argv": ["git", "push"]}, "deny"),
    ("scratch", "net.connect", {"host": "example.com", "port": 443}, "escalate"),
    ("scratch", "world.write", write("Makefile"), "allow"),
    ("project", "session.commit_proposals", {}, "escalate"),
    ("project", "world.write", write(".github/workflows/ci.yml"), "escalate"),
    ("project", "world.write", write("conftest.py"), "escalate"),
    ("project", "world.delete", {"path": "Makefile"}, "escalate"),
    ("project", "world.run", {"command": "ls"}, "deny"),
    ("project", "llm.complete", {"prompt": "p", "max_tokens": 9000}, "allow"),
]


@pytest.mark.parametrize(("policy", "operation", "arguments", "verdict"), CASES)
def test_a_named_policy_says(policy: str, operation: str, arguments: JsonObject, verdict: Verdict) -> None:
    decision = judge(policy, operation, arguments)
    assert decision.verdict == verdict, decision


@pytest.mark.parametrize("operation", ["shell.run", "shell.start"])
def test_project_asks_about_programs_where_the_sandbox_is_weaker(operation: str) -> None:
    assert judge("project", operation, {"argv": ["ls"]}, "copy").rule == "ask-where-it-is-weaker"
    assert judge("project", operation, {"argv": ["git", "push"]}, "copy").verdict == "deny"


def test_a_file_that_runs_later_is_still_a_proposal_after_the_approval() -> None:
    assert judge("project", "world.write", write("Makefile")).requires_staging
    assert not judge("ask-always", "world.write", write("Makefile")).requires_staging


def test_our_policies_have_no_finding() -> None:
    for name in named_policies():
        assert lint(load_policy(name)) == (), name


def test_g24_an_operation_outside_the_list_is_reported() -> None:
    assert judge("safe-analysis", "world.write", write("a")).reason == "Operation not allowed: world.write"


def test_g25_a_denied_operation_is_reported_first() -> None:
    assert judge("safe-analysis", "shell", {}).reason == "Operation explicitly denied: shell"


REACHES_OUT = set(get_args(Role)) - {"read-path", "write-path", "delete-path", "command", "content", "none"}
"""Roles that name something outside the workspace and the sandbox."""


@pytest.mark.parametrize("name", named_policies())
@pytest.mark.parametrize("role", sorted(REACHES_OUT))
def test_a_named_policy_without_labels_lets_nothing_out_unasked(name: str, role: Role) -> None:
    """So a stranger's value decides nothing there, and labels could only add questions."""
    policy = load_policy(name)
    value = "https://example.com/x" if role in ("fetch-url", "git-remote-url") else "value"
    tool = Tool(name="server.act", roles={"to": ArgumentRoles(default=(role,))}, parameters={"type": "object", "properties": {"to": {}}})  # fmt: skip
    call = Call(id=call_id(1, 1), operation="server.act", arguments={"to": value})
    targets = targets_of(tool, call.arguments, LexicalPaths())
    decision = policy.judge(Request(call=call, tool=tool, targets=targets))
    assert decision.verdict in ("escalate", "deny"), decision
    assert bool(policy.labels) == (name == "office")
