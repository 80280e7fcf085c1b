"""Rules that test arguments: by equality, text, number and length, at any depth."""

import pytest

from holdfast.core import Json, JsonObject, Verdict
from holdfast.core.errors import InvalidPolicy
from holdfast.policy import RulePolicy, lint
from holdfast.policy.analysis.examples import judge_example
from holdfast.policy.document import Example
from holdfast.policy.parser import parse_policy

TOOLS = """
tools:
  time.convert: {zone: none, options: none, amount: none}
"""


def verdict(test: str, arguments: JsonObject, rule: Verdict = "allow") -> Verdict:
    """What a policy with one rule, and for deny rules one that allows the rest, decides."""
    rest = "  - {name: rest, allow: time.*}\n" if rule in ("deny", "escalate") else ""
    text = f"policy: t\n{TOOLS}\nrules:\n  - {{name: r, {rule}: time.convert, arguments: {test}}}\n{rest}"
    policy = RulePolicy(parse_policy(text, source="t.yaml"))
    return judge_example(policy, Example(operation="time.convert", arguments=arguments)).verdict


CASES: list[tuple[str, Json, Json]] = [
    ("{equals: UTC}", "UTC", "UTCx"),
    ("{equals: 3}", 3, 4),
    ("{equals: true}", True, 1),
    ("{equals: null}", None, "x"),
    ("{equals: [a, b]}", ["a", "b"], ["a"]),
    ("{one_of: [UTC, 3]}", 3, 4),
    ("{prefix: Europe/}", "Europe/Rome", "Asia/Rome"),
    ("{prefix: [Europe/, Asia/]}", "Asia/Tokyo", "America/Lima"),
    ("{matches: '[A-Z][a-z]+/[A-Z][a-z]+'}", "Europe/Rome", "Europe Rome"),
    ("{glob: 'Europe/*'}", "Europe/Rome", "Africa/Rome"),
    ("{at_least: 3}", 3, 2.5),
    ("{at_most: 3}", -1, 3.5),
    ("{at_least: 1, at_most: 3}", 2, 4),
    ("{length: 3}", "abc", "ab"),
    ("{length: {at_most: 2}}", ["a", "b"], ["a", "b", "c"]),
    ("{length: {at_least: 1}}", {"a": 1}, {}),
    ("{prefix: E, length: {at_most: 5}}", "Eabc", "Eabcde"),
]


@pytest.mark.parametrize(("test", "passing", "failing"), CASES)
def test_a_value_passes_or_fails(test: str, passing: Json, failing: Json) -> None:
    for rule, when_passed, when_failed in (("allow", "allow", "deny"), ("deny", "deny", "allow")):
        assert verdict(f"{{zone: {test}}}", {"zone": passing}, rule) == when_passed  # type: ignore[arg-type]
        assert verdict(f"{{zone: {test}}}", {"zone": failing}, rule) == when_failed  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("test", "value"),
    [
        ("{equals: utc}", "UTC"),
        ("{prefix: europe/}", "EUROPE/Rome"),
        ("{matches: rome}", "Europe/ROME!"),
        ("{glob: europe}", "Europe/Rome"),
        ("{equals: utc}", "u\u200dtc"),
    ],
)
def test_a_rule_that_denies_matches_more_than_one_that_allows(test: str, value: str) -> None:
    assert verdict(f"{{zone: {test}}}", {"zone": value}, "deny") == "deny"
    assert verdict(f"{{zone: {test}}}", {"zone": value}, "allow") == "deny", "no rule matches"


@pytest.mark.parametrize("test", ["{prefix: a}", "{matches: a}", "{glob: a}", "{at_most: 3}", "{length: 3}"])
def test_a_value_that_a_test_cannot_judge_is_not_allowed_and_held_up(test: str) -> None:
    value: Json = True
    assert verdict(f"{{zone: {test}}}", {"zone": value}, "allow") == "deny"
    assert verdict(f"{{zone: {test}}}", {"zone": value}, "deny") == "deny"
    assert verdict(f"{{zone: {test}}}", {}, "deny") == "allow", "an argument that is not there passes no test"


def test_a_text_that_is_too_long_for_a_pattern_is_not_allowed_and_held_up() -> None:
    long = "a" * (1 << 20) + "b"
    assert verdict("{zone: {matches: 'a*b'}}", {"zone": long}, "allow") == "deny"
    assert verdict("{zone: {matches: 'c'}}", {"zone": long}, "deny") == "deny"


def test_a_place_inside_an_argument_is_tested() -> None:
    test = "{options.mode: {equals: fast}}"
    assert verdict(test, {"options": {"mode": "fast"}}) == "allow"
    assert verdict(test, {"options": {"mode": "slow"}}) == "deny"
    assert verdict(test, {"options": "fast"}) == "deny"
    assert verdict(test, {}) == "deny"


def test_every_element_of_a_list_has_to_pass_to_be_allowed_and_one_is_enough_to_be_denied() -> None:
    test = "{'options.steps[].name': {one_of: [a, b]}}"

    def steps(*names: str) -> JsonObject:
        return {"options": {"steps": [{"name": name} for name in names]}}

    assert verdict(test, steps("a", "b")) == "allow"
    assert verdict(test, steps("a", "x")) == "deny"
    assert verdict(test, steps()) == "deny"
    assert verdict(test, steps("x", "a"), "deny") == "deny"
    assert verdict(test, steps("x"), "deny") == "allow"


def test_one_more_element_lifts_no_deny() -> None:
    text = f"""policy: t
{TOOLS}
rules:
  - {{name: ask, escalate: time.convert, arguments: {{"options[]": {{equals: a}}}}}}
"""
    policy = RulePolicy(parse_policy(text, source="t.yaml"))
    for options, expected in ((["a"], "escalate"), (["b"], "deny"), (["b", "a"], "deny")):
        example = Example(operation="time.convert", arguments={"options": list(options)})
        assert judge_example(policy, example).verdict == expected


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ("{zone: {}}", "expected a test"),
        ("{zone: {equals: a, one_of: [b]}}", "not both"),
        ("{zone: {matches: '(?=a)'}}", "look-around"),
        ("{zone: {glob: '../a'}}", "'../a'"),
        ("{zone: {length: -1}}", "whole number"),
        ("{zone: {length: {}}}", "at_least"),
        ("{'a..b': {equals: 1}}", "is not a place"),
        ("{'a[0]': {equals: 1}}", "is not a place"),
        ("{zone: {prefix: ''}}", "expected a name"),
    ],
)
def test_a_test_that_means_nothing_is_an_error_at_its_place(test: str, problem: str) -> None:
    with pytest.raises(InvalidPolicy, match=r"t\.yaml:7:") as caught:
        verdict(test, {})
    assert problem in str(caught.value)


def findings(rules: str) -> set[tuple[str, str]]:
    policy = RulePolicy(parse_policy(f"policy: t\n{TOOLS}\nrules:\n{rules}", source="t.yaml"))
    return {(one.code, one.rule) for one in lint(policy) if one.code not in ("no-example", "no-reason")}


@pytest.mark.parametrize(
    "test",
    [
        "{zone: {at_least: 3, at_most: 2}}",
        "{zone: {length: {at_least: 3, at_most: 2}}}",
        "{zone: {one_of: [5, 6], at_most: 3}}",
        "{zone: {equals: abc, prefix: x}}",
        "{zome: {equals: UTC}}",
    ],
)
def test_lint_finds_a_test_that_never_passes(test: str) -> None:
    assert findings(f"  - {{name: r, allow: time.convert, arguments: {test}}}") == {("vacuous", "r")}


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("{zone: {one_of: [a, b]}}", "{zone: {equals: a}}"),
        ("{zone: {at_most: 5}}", "{zone: {at_most: 3}}"),
        ("{zone: {prefix: [a, b]}}", "{zone: {prefix: a, length: 3}}"),
        ("{zone: {length: {at_most: 5}}}", "{zone: {length: 4}}"),
        ("{zone: {matches: 'a+'}}", "{zone: {matches: 'a+'}, amount: {equals: 1}}"),
    ],
)
def test_lint_finds_a_rule_that_an_earlier_test_shadows(wide: str, narrow: str) -> None:
    rules = "  - {{name: one, allow: time.convert, arguments: {}}}\n  - {{name: two, allow: time.convert, arguments: {}}}\n"
    assert findings(rules.format(wide, narrow)) == {("unreachable", "two")}
    assert findings(rules.format(narrow, wide)) == set()
