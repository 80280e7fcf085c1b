"""A document of a stranger, such as the policy of a project: whatever it holds, reading it costs little and ends in words."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.errors import InvalidPolicy
from holdfast.policy import YamlError, parse_plain_yaml, parse_policy_text, scalar_value
from holdfast.policy.plain_yaml import MAX_NUMBER_CHARACTERS, MAX_UNQUOTED_CHARACTERS, MAX_VALUES

MANY_TAGS = "".join(f"%TAG !{number}! a\n" for number in range(300_000)) + "---\na: 1"
RULE = "- name: a\n  allow: world.read\n  "


@pytest.mark.promise("P10")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"[{'a,' * MAX_VALUES}]", "more than 200,000 values"),
        (f"a: {'1:' * MAX_UNQUOTED_CHARACTERS}1", "without quotes"),
        (MANY_TAGS, "tag directives"),
        (f"# x\r{MANY_TAGS}", "tag directives"),
        (f"# x\u2028{MANY_TAGS}", "tag directives"),
    ],
    ids=["values", "scalar", "directives", "after-cr", "after-separator"],
)
def test_a_document_that_would_cost_much_is_refused_before_it_does(text: str, problem: str) -> None:
    with pytest.raises(YamlError, match=problem) as refused:
        parse_plain_yaml(text, max_characters=16 << 20)
    assert refused.value.line in (1, 2)


GLOBS = ", ".join(str(number) + "*a" * 400 for number in range(400))
PATTERNS = ", ".join(f"'{number}[a-z]{{1,400}}'" for number in range(400))


@pytest.mark.promise("P10")
@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        (f"paths: [{GLOBS}]", "250,000 characters in its globs"),
        (f"executes: true\n{RULE}" * 200, "250,000 characters in its globs"),
        (f"arguments: {{path: {{matches: [{PATTERNS}]}}}}", "1,000,000 steps to compile its patterns"),
    ],
    ids=["globs", "executes", "patterns"],
)
def test_the_patterns_of_a_policy_have_a_bound_together(
    rest: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.policy.rule_tests.parser.MAX_PATTERN_COST", 1_000_000)  # 30 times as fast
    with pytest.raises(InvalidPolicy, match=problem):
        parse_policy_text(f"policy: x\nrules:\n{RULE}{rest}", source="x")


TAGS = (
    "str",
    "bool",
    "int",
    "float",
    "null",
    "timestamp",
    "binary",
    "set",
    "seq",
    "omap",
    "merge",
    "value",
    "x",
)
PIECES = (
    "",
    "+",
    "-",
    "_",
    "0x",
    "0b",
    "0",
    "1",
    ":",
    "1:",
    ".",
    "e9",
    "yes",
    "foo",
    "2001-01-01",
    "٣",
    " ",
    "9" * 400,
)


@pytest.mark.promise("P10")
@given(st.sampled_from(TAGS), st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_a_scalar_with_any_tag_has_a_value_or_is_refused(tag: str, text: str) -> None:
    try:
        value = scalar_value(yaml.ScalarNode(f"tag:yaml.org,2002:{tag}", text))
    except ValueError:
        return
    assert value is None or isinstance(value, str | bool | int | float)


def test_a_number_in_base_60_has_a_bound() -> None:
    with pytest.raises(ValueError, match="more than"):
        scalar_value(yaml.ScalarNode("tag:yaml.org,2002:int", "1:" * MAX_NUMBER_CHARACTERS + "1"))
    with pytest.raises(ValueError, match="too large"):
        scalar_value(yaml.ScalarNode("tag:yaml.org,2002:float", "1:" * 400 + "1.5"))
