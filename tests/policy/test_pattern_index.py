"""Rules about the text of an argument are found by what their patterns must contain, and none that matches is missed."""

import random

import msgspec
import pytest
from tests.policy.random_policies import VERDICTS, random_conversion

from holdfast.core import Json
from holdfast.policy import PolicyDocument, Request, Rule, RulePolicy
from holdfast.policy.document import ArgumentTest
from holdfast.policy.extend import deny_first
from holdfast.policy.rule_index import RuleIndex
from holdfast.policy.rule_tests.literal_search import LiteralSearch
from holdfast.policy.rule_tests.text_patterns import TextPattern

PIECES = [
    "ab",
    "k",
    "s",
    "Rome",
    "[ab]",
    ".",
    "(ab|ba)",
    "(?:a|)",
    "b?",
    "a+",
    "x*",
    "[0-9]{2}",
    "ss",
    "ß",
    "\\.",
    "[kK]",
]
LETTERS = [
    "a",
    "b",
    "A",
    "B",
    "k",
    "K",
    "\u212a",
    "s",
    "\u017f",
    "ß",
    "\u200b",
    "rome",
    "Rome",
    "12",
    ".",
    "x",
]
ODD: list[Json] = ["", 7, None, ["ab"], {"a": "ab"}, True]


def random_test(rng: random.Random) -> ArgumentTest:
    pieces = ["".join(rng.choices(PIECES, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 2))]
    argument = rng.choice(["zone", "zone", "options.steps[].name"])
    if rng.random() < 0.3:
        return ArgumentTest(
            argument=argument, prefixes=tuple("".join(rng.choices(LETTERS, k=2)) for _ in pieces)
        )
    ends = rng.choice([("", ""), ("^(?:", ")"), ("(?:", ")$"), ("^(?:", ")$")])
    return ArgumentTest(argument=argument, patterns=tuple(f"{ends[0]}{each}{ends[1]}" for each in pieces))


def random_text(rng: random.Random) -> Json:
    return rng.choice(ODD) if rng.random() < 0.1 else "".join(rng.choices(LETTERS, k=rng.randint(1, 8)))


def random_call(rng: random.Random) -> Request:
    request = random_conversion(rng)
    steps: list[Json] = [{"name": random_text(rng)} for _ in range(rng.randrange(3))]
    arguments = {"zone": random_text(rng), "options": {"steps": steps}}
    return msgspec.structs.replace(request, call=msgspec.structs.replace(request.call, arguments=arguments))


@pytest.mark.parametrize("seed", range(40))
def test_the_indexed_rules_decide_as_if_every_rule_had_been_tried(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    rules = tuple(
        Rule(
            name=f"r{number}",
            verdict=rng.choice(VERDICTS),
            operations=("time.convert",),
            arguments=(random_test(rng),),
        )
        for number in range(12)
    )
    document = PolicyDocument(name="patterns", rules=deny_first(rules))
    policy = RulePolicy(document)
    requests = [random_call(rng) for _ in range(40)]
    indexed = [policy.judge(request) for request in requests]
    monkeypatch.setattr(
        RuleIndex, "candidates", lambda self, request, *_: self.for_operation(request.call.operation)
    )
    assert [policy.judge(request) for request in requests] == indexed


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("https://docs\\.example/.*", {"https://docs.example/"}),
        ("(Europe|Asia)/[A-Z]+", {"europe", "asia"}),
        ("a[0-9]+project-7", {"project-7"}),
        ("(abc)+d", {"abc"}),
        ("[0-9]+", None),
        ("(abc)?", None),
        ("abc|[0-9]", None),
        ("ß", None),
    ],
)
def test_every_match_of_a_pattern_contains_one_of_its_literals(
    pattern: str, literals: set[str] | None
) -> None:
    for for_deny in (True, False):
        assert TextPattern(pattern, for_deny=for_deny).literals == literals


@pytest.mark.parametrize("seed", range(30))
def test_a_search_finds_exactly_the_literals_that_a_text_contains(seed: int) -> None:
    rng = random.Random(seed)
    literals = {"".join(rng.choices("ab", k=rng.randint(1, 6))) for _ in range(12)}
    search = LiteralSearch(literals)
    for _ in range(50):
        text = "".join(rng.choices("abc", k=rng.randint(0, 30)))
        assert search.find(text) == {each for each in literals if each in text}


def test_a_call_is_tried_against_one_of_many_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    matches = TextPattern.matches

    def counted(self: TextPattern, text: str) -> bool:
        tried.append(text)
        return matches(self, text)

    monkeypatch.setattr(TextPattern, "matches", counted)
    request = random_conversion(random.Random(1))
    call = msgspec.structs.replace(request.call, arguments={"zone": "zone-9999/x"})
    for count in (10, 500):
        rules = tuple(
            Rule(
                name=f"r{number}",
                verdict="allow",
                operations=("time.convert",),
                arguments=(ArgumentTest(argument="zone", patterns=(f"zone-{number}/.*",)),),
            )
            for number in range(10_000 - count, 10_000)
        )
        policy = RulePolicy(PolicyDocument(name="many", rules=rules))
        tried.clear()
        assert policy.judge(msgspec.structs.replace(request, call=call)).verdict == "allow"
        assert len(tried) == 1
