"""The policies that come with Holdfast."""

import pytest

from holdfast.core import Call, Decision, JsonObject, Verdict, call_id
from holdfast.policy import LexicalPaths, Request, load_policy, named_policies, targets_of
from holdfast.policy.tool_roles import KNOWN_TOOLS


def judge(policy: str, operation: str, arguments: JsonObject) -> Decision:
    tool = KNOWN_TOOLS[operation]
    call = Call(id=call_id(1, 1), operation=operation, arguments=arguments)
    return load_policy(policy).judge(
        Request(call=call, tool=tool, targets=targets_of(tool, arguments, LexicalPaths()))
    )


def write(path: str) -> JsonObject:
    return {"path": path, "content": ""}


@pytest.mark.parametrize("name", named_policies())
def test_every_named_policy_loads_and_meets_its_examples(name: str) -> None:
    assert load_policy(name).name == name


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
    ("safe-analysis", "shell.run", {"command": "ls"}, "deny"),
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
    ("ask-always", "world.read", {"path": "a"}, "escalate"),
    ("ask-always", "world.write", write("/etc/x"), "escalate"),
    ("ask-always", "net.fetch", {"url": "http://localhost/"}, "escalate"),
    ("ask-always", "memo", {}, "allow"),
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
    ("project", "shell.run", {"command": "ls"}, "deny"),
    ("project", "world.run", {"command": "ls"}, "deny"),
    ("project", "llm.complete", {"prompt": "p", "max_tokens": 9000}, "allow"),
]


@pytest.mark.parametrize(("policy", "operation", "arguments", "verdict"), CASES)
def test_a_named_policy_says(policy: str, operation: str, arguments: JsonObject, verdict: Verdict) -> None:
    decision = judge(policy, operation, arguments)
    assert decision.verdict == verdict, decision


def test_g24_an_operation_outside_the_list_is_reported() -> None:
    assert judge("safe-analysis", "world.write", write("a")).reason == "Operation not allowed: world.write"


def test_g25_a_denied_operation_is_reported_first() -> None:
    assert judge("safe-analysis", "shell", {}).reason == "Operation explicitly denied: shell"
