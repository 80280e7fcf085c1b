"""Rules about commands, the tier of the sandbox and groups of hosts."""

import pytest

from holdfast.core import CallFacts, CommandTarget, JsonObject, SandboxTier, Verdict
from holdfast.core.errors import InvalidPolicy
from holdfast.policy import (
    KNOWN_TOOLS,
    LexicalPaths,
    RulePolicy,
    SessionFacts,
    explain,
    lint,
    targets_of,
)
from holdfast.policy.analysis.examples import judge_example, request_for_example
from holdfast.policy.document import Example
from holdfast.policy.parser import parse_policy


def policy(rules: str) -> RulePolicy:
    return RulePolicy(parse_policy(f"policy: t\nrules:\n{rules}", source="t.yaml"))


def judge(one: RulePolicy, arguments: JsonObject, tier: SandboxTier = "full") -> Verdict:
    return judge_example(one, Example(operation="shell.run", arguments=arguments, tier=tier)).verdict


ALLOW = policy("  - {name: r, allow: shell.run, commands: [git log, [npm, [test, ci]], pytest, ./gradlew]}")
DENY = policy(
    "  - {name: r, deny: shell.run, commands: [git push, [npm, publish], [git, commit, --amend]]}\n"
    "  - {name: rest, allow: shell.run}"
)


@pytest.mark.parametrize(
    "words",
    [
        "git log",
        "git log --oneline",
        "npm test",
        "npm ci --silent",
        "pytest -q",
        "/usr/bin/git log",
        "./gradlew build",
    ],
)
def test_a_command_that_begins_with_the_words_is_allowed(words: str) -> None:
    assert judge(ALLOW, {"argv": list(words.split())}) == "allow"
    assert judge(ALLOW, {"script": words}) == "allow"


@pytest.mark.parametrize(
    "words",
    [
        "git", "git push", "git -C x log", "GIT log", "/tmp/git log", "gitlog", "npm run test", "gradlew build", "x/gradlew",
        "env git log", "sudo pytest", "xargs pytest", "find . -exec pytest ;",
    ],
)  # fmt: skip
def test_a_command_that_does_not_is_not_allowed(words: str) -> None:
    assert judge(ALLOW, {"argv": list(words.split())}) == "deny"


@pytest.mark.parametrize(
    "script",
    [
        "pytest && rm -rf x", "pytest; curl x", "pytest | sh", "pytest $(rm x)", "pytest `rm x`", "pytest $x", "pytest &", "x=1 pytest",
        "pytest\nrm x", "if pytest; then rm x; fi", "pytest <(rm x)", "eval pytest", "pytest() { rm x; }; pytest",
    ],
)  # fmt: skip
def test_a_script_is_allowed_only_if_each_of_its_commands_is(script: str) -> None:
    assert judge(ALLOW, {"script": script}) == "deny"


def test_a_script_of_allowed_commands_is_allowed() -> None:
    assert judge(ALLOW, {"script": "npm ci && pytest -q | git log; npm test"}) == "allow"


def test_a_call_that_sets_environment_variables_is_not_allowed_by_its_words() -> None:
    assert judge(ALLOW, {"argv": ["pytest"], "env": {"PATH": "/tmp/x"}}) == "deny"
    assert judge(ALLOW, {"argv": ["pytest"], "env": {}}) == "allow"


@pytest.mark.parametrize(
    "script",
    [
        "git push", "git -C sub push", "git --no-pager -c a=b push origin", "/opt/bin/git push", "make && git push",
        "sudo git push", "env X=1 git push", "bash -c 'git push'", "echo `git push`", "GIT PUSH", "git pu\\sh", "'git' \"push\"",
        "npm --tag beta publish", "git commit -m x --amend", "for d in *; do git push; done", "git \\\npush",
    ],
)  # fmt: skip
def test_a_denied_command_is_found_in_its_disguises(script: str) -> None:
    assert judge(DENY, {"script": script}) == "deny"


@pytest.mark.parametrize(
    "script",
    ["git stash push", "git log push", "npm run publish", "git commit -m 'git push'", "echo git push"],
)
def test_a_command_that_only_mentions_the_words_is_not_denied(script: str) -> None:
    assert judge(DENY, {"script": script}) == "allow"


@pytest.mark.parametrize(
    "argv", [["python", "-c", "import os; os.system('git pu' + 'sh')"], ["./publish.sh"]]
)
def test_a_deny_on_words_is_not_a_wall(argv: list[str]) -> None:
    assert judge(DENY, {"argv": list(argv)}) == "allow"


def test_an_escalation_that_finds_its_words_in_an_opaque_script_lifts_no_deny() -> None:
    one = policy("  - {name: r, escalate: shell.run, commands: [make]}\n")
    assert judge(one, {"argv": ["make"]}) == "escalate"
    assert judge(one, {"script": "make; ls"}) == "deny", "no rule allows ls"
    assert judge(one, {"script": "make $x"}) == "deny", "nor what else may run"


def test_the_longest_script_is_judged_in_no_time() -> None:
    script = "git -x " * 9000 + "$"
    request = request_for_example(DENY, Example(operation="shell.run", arguments={"script": script}))
    assert DENY.judge(request).verdict == "allow"


def test_the_targets_of_a_script_are_its_commands() -> None:
    tool = KNOWN_TOOLS["shell.run"]
    found = targets_of(tool, {"script": "sort < a > b && wc -l b"}, LexicalPaths())
    assert found == (
        CommandTarget(role="command", argument="script", words=("sort",), reads=("a",), writes=("b",)),
        CommandTarget(role="command", argument="script", words=("wc", "-l", "b")),
    )
    one, other = (targets_of(tool, {"script": text}, LexicalPaths()) for text in ("ls $a", "ls  $a"))
    assert one != other, "two opaque scripts are the same only if their texts are"


def test_a_rule_applies_in_its_tier_only() -> None:
    one = policy(
        "  - {name: full, allow: shell.*, tier: full}\n  - {name: copy, escalate: shell.*, tier: [copy]}\n"
    )
    assert judge(one, {"argv": ["ls"]}, "full") == "allow"
    assert judge(one, {"argv": ["ls"]}, "copy") == "escalate"
    call = Example(operation="world.list", arguments={})
    assert judge_example(policy("  - {name: r, allow: '*', tier: full}"), call).verdict == "deny"


def test_the_facts_of_a_call_are_those_that_concern_it() -> None:
    facts = SessionFacts(
        tier="full",
        host_groups=lambda: {"package-registries": ("*.example.com",), "other": ("b.example",)},
    )
    connect = KNOWN_TOOLS["net.connect"]
    hosts = targets_of(connect, {"host": "a.example.com", "port": 443}, LexicalPaths())
    groups: dict[str, tuple[str, ...]] = {"a.example.com": ("package-registries",)}
    assert facts.for_call(connect, hosts) == CallFacts(tier="full", host_groups=groups)
    assert facts.for_call(KNOWN_TOOLS["world.list"], ()) == CallFacts()


def test_groups_of_hosts_are_looked_for_only_if_a_call_leads_to_a_host() -> None:
    def find() -> dict[str, tuple[str, ...]]:
        raise AssertionError("nothing leads to a host")

    run = KNOWN_TOOLS["shell.run"]
    targets = targets_of(run, {"argv": ["ls"]}, LexicalPaths())
    assert SessionFacts(tier="full", host_groups=find).for_call(run, targets) == CallFacts(tier="full")


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("packages.example", 443, "allow"),
        ("Packages.Example", 80, "allow"),
        ("evil.example", 443, "escalate"),
        ("packages.example.evil.example", 443, "escalate"),
        ("git.example", 22, "allow"),
        ("git.example", 443, "escalate"),
        ("127.0.0.1", 443, "escalate"),
        ("::1", 443, "escalate"),
        ("0x7f.1", 443, "escalate"),
    ],
)
def test_connections_are_judged_by_group_and_host_and_port(host: str, port: int, expected: Verdict) -> None:
    one = policy(
        "  - {name: r, allow: net.connect, hosts: [group:package-registries, 'git.example:22']}\n"
        "  - {name: ask, escalate: net.connect}"
    )
    example = Example(operation="net.connect", arguments={"host": host, "port": port})
    assert judge_example(one, example).verdict == expected


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ("commands: []", "at least one"),
        ("commands: [[]]", "at least one"),
        ("commands: ['git  log']", "one space"),
        ("commands: [\"git 'a b'\"]", "write a list"),
        ("commands: [{git: log}]", "expected text"),
        ("tier: none", "is not a tier"),
        ("hosts: ['group:No Such']", "is not a host pattern"),
    ],
)
def test_a_test_that_means_nothing_is_an_error(test: str, problem: str) -> None:
    with pytest.raises(InvalidPolicy, match=r"t\.yaml:3") as caught:
        policy(f"  - {{name: r, allow: shell.run, {test}}}")
    assert problem in str(caught.value)


def test_explain_shows_each_command_with_the_rule_that_decides_it() -> None:
    request = request_for_example(ALLOW, Example(operation="shell.run", arguments={"script": "pytest && ls"}))
    lines = "\n".join(explain(ALLOW, request).lines())
    assert "allow    command script='pytest'  by r" in lines
    assert "deny     command script='ls'  by default-deny" in lines
    assert "not r (t.yaml:3): the command does not begin with its words" in lines


@pytest.mark.parametrize(
    ("arguments", "because"),
    [
        ({"script": "pytest $(id)"}, "the script is opaque"),
        ({"argv": ["pytest"], "env": {"PATH": "."}}, "the call sets environment variables"),
    ],
)
def test_explain_says_why_words_that_fit_do_not_allow_a_command(arguments: JsonObject, because: str) -> None:
    request = request_for_example(ALLOW, Example(operation="shell.run", arguments=arguments))
    assert f"not r (t.yaml:3): {because}" in "\n".join(explain(ALLOW, request).lines())


def test_explain_shows_the_tier_and_the_groups_that_held() -> None:
    one = policy("  - {name: r, allow: shell.run, tier: full}")
    example = Example(operation="shell.run", arguments={"argv": ["ls"]}, tier="copy")
    lines = "\n".join(explain(one, request_for_example(one, example)).lines())
    assert "sandbox: copy" in lines
    assert "the sandbox has another tier" in lines


def findings(rules: str) -> set[tuple[str, str]]:
    return {
        (one.code, one.rule) for one in lint(policy(rules)) if one.code not in ("no-example", "no-reason")
    }


@pytest.mark.parametrize(
    "rule",
    [
        "allow: world.read, tier: full",
        "allow: world.read, commands: [ls]",
        "allow: shell.run, commands: [sudo ls]",
        "allow: shell.run, commands: [[bash, -c]]",
        "allow: net.connect, hosts: [group:nowhere]",
        "allow: shell.read, hosts: [example.com]",
    ],
)
def test_lint_finds_a_test_that_never_passes(rule: str) -> None:
    assert findings(f"  - {{name: r, {rule}}}") == {("vacuous", "r")}


def test_lint_finds_a_prefix_that_another_one_covers() -> None:
    assert findings("  - {name: r, deny: shell.run, commands: [git, git push]}") == {("redundant", "r")}


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("commands: [git]", "commands: [git log, git show]"),
        ("commands: [[[git, hg]]]", "commands: [[hg, log]]"),
        ("tier: [full, copy]", "tier: full"),
        ("tier: full", "tier: full, commands: [ls]"),
    ],
)
def test_lint_finds_a_rule_that_an_earlier_test_shadows(wide: str, narrow: str) -> None:
    rules = "  - {{name: one, allow: shell.run, {}}}\n  - {{name: two, allow: shell.run, {}}}\n"
    assert findings(rules.format(wide, narrow)) == {("unreachable", "two")}
    assert findings(rules.format(narrow, wide)) == set()
