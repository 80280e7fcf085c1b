"""Rules suggested from answered prompts: few, and none that allows what was denied."""

import random

import pytest

from holdfast.core import ArgumentRoles, Call, CallFacts, JsonObject, Tool, call_id, restricts
from holdfast.policy import (
    KNOWN_TOOLS,
    AnsweredPrompt,
    LexicalPaths,
    Request,
    RulePolicy,
    Suggestions,
    load_policy,
    suggest,
    targets_of,
)
from holdfast.policy.parser import parse_policy

CONVERT = Tool(name="time.convert", roles={"zone": ArgumentRoles(default=("none",))})
ASK = load_policy("ask-always")


def prompt(operation: str, arguments: JsonObject, *, is_approved: bool = True) -> AnsweredPrompt:
    tool = KNOWN_TOOLS.get(operation, CONVERT)
    call = Call(id=call_id(1, 1), operation=operation, arguments=arguments)
    facts = CallFacts(tier="full") if tool.group == "shell" else CallFacts()
    return AnsweredPrompt(
        Request(call=call, tool=tool, targets=targets_of(tool, arguments, LexicalPaths()), facts=facts),
        is_approved,
    )


def read(path: str, *, is_approved: bool = True) -> AnsweredPrompt:
    return prompt("world.read", {"path": path}, is_approved=is_approved)


def loaded(result: Suggestions) -> RulePolicy:
    """The suggested rules as a person would save them."""
    text = "policy: s\nextends: ask-always\nrules:\n" + "\n".join(each.yaml for each in result.rules)
    return RulePolicy(parse_policy(text, source="s.yaml", extended=lambda name: load_policy(name).document))


def test_one_rule_answers_the_prompts_of_a_folder() -> None:
    prompts = [read(f"src/{name}.py") for name in "abc"]
    result = suggest(ASK, prompts)
    [one] = result.rules
    assert (one.answers, result.answered, result.prompts) == (3, 3, 3)
    assert one.rule.paths is not None
    assert one.rule.paths.globs == ("src/**",)
    assert all(loaded(result).judge(each.request).verdict == "allow" for each in prompts)


def test_rules_of_one_kind_are_joined() -> None:
    prompts = [prompt("net.connect", {"host": host, "port": 443}) for host in ("a.example", "b.example")]
    [one] = suggest(ASK, prompts).rules
    assert one.rule.hosts is not None
    assert set(one.rule.hosts.patterns) == {"a.example", "b.example"}


def test_commands_are_suggested_by_program_and_subcommand() -> None:
    prompts = [prompt("shell.run", {"argv": ["git", "log", option]}) for option in ("-1", "--oneline")]
    [one] = suggest(ASK, prompts).rules
    assert one.rule.commands is not None
    assert one.rule.commands.prefixes == ((("git",), ("log",)),)


def test_nothing_that_was_denied_is_allowed() -> None:
    prompts = [read("src/a.py"), read("src/key.pem", is_approved=False), read("docs/b.md")]
    result = suggest(ASK, prompts)
    assert [each.rule.paths.globs for each in result.rules if each.rule.paths] == [("docs/**",)]
    assert (result.answered, result.prompts) == (1, 2)
    assert "src/key.pem" in result.rules[0].yaml, "the denied call is an example of a miss"


def test_an_operation_without_targets_is_suggested_by_its_values_where_another_was_denied() -> None:
    prompts = [
        prompt("time.convert", {"zone": "Europe/Rome"}),
        prompt("time.convert", {"zone": "Europe/Oslo"}),
        prompt("time.convert", {"zone": "Mars/Base"}, is_approved=False),
    ]
    [one] = suggest(ASK, prompts).rules
    assert one.rule.arguments[0].one_of == ("Europe/Rome", "Europe/Oslo")


@pytest.mark.parametrize("arguments", [{"script": "make $x"}, {"argv": ["sudo", "ls"]}])
def test_an_opaque_command_gives_no_rule(arguments: JsonObject) -> None:
    assert suggest(ASK, [prompt("shell.run", arguments)]).rules == ()


def histories(seed: int, count: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        prompts = [
            rng.choice(
                [
                    read(
                        rng.choice(["a.py", "src/a.py", "src/b/c.py", "/etc/hosts", "/data/x"]),
                        is_approved=rng.random() < 0.7,
                    ),
                    prompt(
                        "net.fetch",
                        {"url": f"https://{rng.choice('abc')}.example.com/x"},
                        is_approved=rng.random() < 0.7,
                    ),
                    prompt(
                        "shell.run",
                        {"script": rng.choice(["make", "git log && make", "git push", "ls $x"])},
                        is_approved=rng.random() < 0.7,
                    ),
                    prompt("time.convert", {"zone": rng.choice(["A", "B"])}, is_approved=rng.random() < 0.7),
                ]
            )
            for _ in range(rng.randint(1, 12))
        ]
        result = suggest(ASK, prompts)
        policy = loaded(result) if result.rules else ASK
        for each in prompts:
            if not each.is_approved:
                assert restricts(policy.judge(each.request).verdict), (each, result)
        open_ = [
            each for each in prompts if each.is_approved and restricts(policy.judge(each.request).verdict)
        ]
        assert len(open_) == result.prompts - result.answered


def test_no_history_leads_to_a_rule_that_allows_what_was_denied() -> None:
    histories(1, 60)


@pytest.mark.soak
def test_no_history_leads_to_a_rule_that_allows_what_was_denied_for_long() -> None:
    histories(2, 300)
