"""Reads the rule tests of commands and arguments from YAML."""

import re
from collections.abc import Sequence

from holdfast.core.globs import glob_problem
from holdfast.policy.document import ArgumentTest, CommandTest, WordAlternatives
from holdfast.policy.rule_tests.pattern_syntax import PatternError
from holdfast.policy.rule_tests.text_patterns import compile_pattern
from holdfast.policy.yaml_nodes import YamlField, YamlNode, refuse_unknown_fields

ARGUMENT_FIELDS = ("equals", "one_of", "prefix", "matches", "glob", "at_least", "at_most", "length")
MAX_GLOB_CHARACTERS = 250_000
"""Of all globs of a policy. Compiled, a character takes up to 500 bytes of memory and 20 microseconds."""
MAX_PATTERN_COST = 30_000_000
"""Of all patterns of a policy: 120 MB and about ten seconds, enough for 10,000 short ones."""
_PLACE = re.compile(r"[^.\[\]]+(\[\])*(\.[^.\[\]]+(\[\])*)*")


def read_commands(node: YamlNode) -> CommandTest:
    """`commands`: prefixes, each a text of words, or a list of words in which a list stands for alternatives."""
    return CommandTest(prefixes=node.at_least_one(_prefix))


def read_glob(node: YamlNode) -> str:
    """A glob over paths or over the text of an argument."""
    pattern = node.text()
    if (problem := glob_problem(pattern)) is not None:
        node.fail(f"{pattern[:200]!r}: {problem}")
    spend_globs(node, [pattern])
    return pattern


def spend_globs(node: YamlNode, globs: Sequence[str]) -> None:
    """Count globs towards what a policy may have of them."""
    node.spend("characters in its globs", sum(map(len, globs)), MAX_GLOB_CHARACTERS)


def read_argument_tests(node: YamlNode) -> tuple[ArgumentTest, ...]:
    """`arguments`: tests by the place of a value."""
    fields = node.fields() or node.fail("expected at least one value; otherwise leave the field out")
    return tuple(_argument_test(place, field) for place, field in fields.items())


def _prefix(node: YamlNode) -> tuple[WordAlternatives, ...]:
    if node.kind == "a list":
        return node.at_least_one(lambda each: each.at_least_one(_word))
    words = node.name().split(" ")
    if not all(words) or set("'\"\\\t\n") & set(node.text()):
        node.fail("expected words with one space between them; write a list for words with spaces or quotes")
    return tuple((word,) for word in words)


def _word(node: YamlNode) -> str:
    word = node.text()
    return word if word and "\0" not in word else node.fail("expected a word")


def _argument_test(place: str, field: YamlField) -> ArgumentTest:
    if not _PLACE.fullmatch(place):
        field.key_node.fail(
            f"{place!r} is not a place; expected `argument`, `argument.field` or `argument[].field`"
        )
    node = field.node
    tests = node.fields()
    refuse_unknown_fields(tests, ARGUMENT_FIELDS, "a test of an argument")
    if not tests:
        node.fail(f"expected a test, one of {', '.join(ARGUMENT_FIELDS)}")
    if "equals" in tests and "one_of" in tests:
        node.fail("expected `equals` or `one_of`, not both")
    given = {key: tests[key].node for key in tests}
    one_of = (given["equals"].json(),) if "equals" in given else ()
    shortest, longest = _length(given["length"]) if "length" in given else (None, None)
    return ArgumentTest(
        argument=place,
        one_of=given["one_of"].at_least_one(YamlNode.json) if "one_of" in given else one_of,
        prefixes=given["prefix"].at_least_one(YamlNode.name) if "prefix" in given else (),
        patterns=given["matches"].at_least_one(_pattern) if "matches" in given else (),
        globs=given["glob"].at_least_one(read_glob) if "glob" in given else (),
        at_least=given["at_least"].number() if "at_least" in given else None,
        at_most=given["at_most"].number() if "at_most" in given else None,
        shortest=shortest,
        longest=longest,
    )


def _length(node: YamlNode) -> tuple[int | None, int | None]:
    if node.kind != "a mapping":
        return _count(node), _count(node)
    bounds = node.fields()
    refuse_unknown_fields(bounds, ("at_least", "at_most"), "`length`")
    if not bounds:
        node.fail("expected `at_least:` or `at_most:`")
    shortest = _count(bounds["at_least"].node) if "at_least" in bounds else None
    longest = _count(bounds["at_most"].node) if "at_most" in bounds else None
    return shortest, longest


def _count(node: YamlNode) -> int:
    value = node.number()
    return int(value) if value >= 0 and value == int(value) else node.fail("expected a whole number")


def _pattern(node: YamlNode) -> str:
    pattern = node.text()
    try:
        for for_deny in (False, True):
            cost = compile_pattern(pattern, for_deny).cost
            node.spend("steps to compile its patterns", cost, MAX_PATTERN_COST)
    except PatternError as error:
        node.fail(f"{pattern[:200]!r}: {error}")
    return pattern
