"""Tests of arguments: `arguments`.

A rule that allows or stages matches only if every value at the place passes. A rule that denies or escalates matches if one
value passes; it ignores case and invisible characters, and a value that its test cannot judge passes.
"""

from collections.abc import Iterator
from functools import lru_cache

from holdfast.core import Json, JsonObject, Tool, encode
from holdfast.core.globs import casefold_path, compile_glob, normalize_path
from holdfast.policy.contract import Request
from holdfast.policy.document import ArgumentTest
from holdfast.policy.rule_tests.contract import CallTest
from holdfast.policy.rule_tests.text_patterns import compile_pattern
from holdfast.policy.targets import json_equal

EACH = "[]"
"""The step of a place that stands for every element of a list."""
MAX_TEXT_LENGTH = 1 << 20
"""Characters of a text that a pattern is tried on. A longer text cannot be judged by a pattern."""


class NoArgumentMatcher(CallTest):
    """`arguments: none`."""

    mismatch = "it is for calls without arguments"

    def matches(self, request: Request) -> bool:
        return not request.call.arguments


class ArgumentMatcher(CallTest):
    """The test of one argument, or of the values at one place inside it."""

    mismatch = "an argument does not pass its test"

    def __init__(self, test: ArgumentTest, *, for_deny: bool) -> None:
        self.argument = test.argument
        self._test = test
        self._for_deny = for_deny
        self._prefixes = tuple(map(casefold_path, test.prefixes)) if for_deny else test.prefixes
        self._patterns = tuple(compile_pattern(pattern, for_deny) for pattern in test.patterns)
        self._globs = tuple(compile_glob(glob, for_deny) for glob in test.globs)

    def matches(self, request: Request) -> bool:
        return all(self.passes(value) for value in values_at(self.argument, request))

    def matches_part(self, request: Request) -> bool:
        return any(self.passes(value) for value in values_at(self.argument, request))

    def index_keys(self) -> frozenset[str] | None:
        values = self._test.one_of
        if (
            not values
            or EACH in steps_of(self.argument)
            or any(isinstance(one, dict | list) for one in values)
        ):
            return None
        return frozenset(_key(self.argument, value) for value in values)

    def literals(self) -> frozenset[str] | None:
        """Texts one of which `searched_texts` must contain for a value to pass that a pattern can judge; None if any may."""
        if self._patterns:
            each = [pattern.literals for pattern in self._patterns]
            known = [found for found in each if found]
            return frozenset().union(*known) if len(known) == len(each) else None
        prefixes = {prefix.lower() for prefix in (*self._test.prefixes, *self._prefixes)}
        return frozenset(prefixes) if prefixes and all(prefixes) else None

    def passes(self, value: Json) -> bool:
        """Whether one value passes."""
        test = self._test
        if test.one_of and not any(self._is_equal(value, one) for one in test.one_of):
            return False
        if (test.at_most, test.at_least) != (None, None) and not self._number_passes(value):
            return False
        if (test.shortest, test.longest) != (None, None) and not self._length_passes(value):
            return False
        return not (self._prefixes or self._patterns or self._globs) or self._text_passes(value)

    def _is_equal(self, value: Json, one: Json) -> bool:
        if self._for_deny and isinstance(value, str) and isinstance(one, str):
            return casefold_path(value) == casefold_path(one)
        return json_equal(value, one)

    def _number_passes(self, value: Json) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._unjudged(value)
        low, high = self._test.at_least, self._test.at_most
        return (low is None or value >= low) and (high is None or value <= high)

    def _length_passes(self, value: Json) -> bool:
        if not isinstance(value, str | list | dict):
            return self._unjudged(value)
        shortest, longest = self._test.shortest, self._test.longest
        return (shortest is None or len(value) >= shortest) and (longest is None or len(value) <= longest)

    def _text_passes(self, value: Json) -> bool:
        if not isinstance(value, str):
            return self._unjudged(value)
        is_too_long = self._patterns and len(value) > MAX_TEXT_LENGTH
        if is_too_long or (self._globs and normalize_path(value) is None):
            return self._unjudged(value)
        texts = dict.fromkeys((value, casefold_path(value))) if self._for_deny else (value,)
        return (
            (
                not self._prefixes
                or any(text.startswith((*self._test.prefixes, *self._prefixes)) for text in texts)
            )
            and (not self._patterns or any(one.matches(text) for one in self._patterns for text in texts))
            and (not self._globs or any(glob.matches(value) for glob in self._globs))
        )

    def _unjudged(self, value: Json) -> bool:
        """Whether a value of another kind passes. An argument that is not there never does."""
        return self._for_deny and value is not None


def passes(test: ArgumentTest, value: Json, *, for_deny: bool) -> bool:
    """Whether one value passes a test."""
    return ArgumentMatcher(test, for_deny=for_deny).passes(value)


def argument_keys(argument: str, request: Request) -> Iterator[str]:
    """The keys by which the index looks the value of an argument up."""
    for value in values_at(argument, request):
        if not isinstance(value, dict | list):
            yield _key(argument, value)


def searched_texts(argument: str, request: Request) -> list[str] | None:
    """The texts at a place in which literals are searched; None if a value there cannot be judged by its text."""
    found: list[str] = []
    for value in values_at(argument, request):
        if isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH:
            found += {value.lower(), casefold_path(value).lower()}
        elif value is not None:
            return None
    return found


def values_at(argument: str, request: Request) -> list[Json]:
    """The values at a place such as `options.mode` or `edits[].path`. What is missing is its default in the schema, or null."""
    found: list[Json] = [request.call.arguments]
    for number, step in enumerate(steps_of(argument)):
        if step == EACH:
            found = [inner for one in found for inner in (one if isinstance(one, list) else (one,))] or [None]
        else:
            found = [one.get(step) if isinstance(one, dict) else None for one in found]
        if None in found:
            default = _default_of(request.tool, steps_of(argument)[: number + 1])
            found = [default if one is None else one for one in found]
    return found


@lru_cache(maxsize=4096)
def steps_of(argument: str) -> tuple[str, ...]:
    """The steps of a place: `edits[].path` has `edits`, `[]` and `path`."""
    return tuple(part for part in argument.replace(EACH, f".{EACH}").split(".") if part)


def _default_of(tool: Tool | None, steps: tuple[str, ...]) -> Json:
    schema: JsonObject = tool.parameters if tool is not None else {}
    for step in steps:
        inner = schema.get("items") if step == EACH else _property(schema, step)
        if not isinstance(inner, dict):
            return None
        schema = inner
    return schema.get("default")


def _property(schema: JsonObject, name: str) -> Json:
    properties = schema.get("properties")
    return properties.get(name) if isinstance(properties, dict) else None


def _key(argument: str, value: Json) -> str:
    if isinstance(value, str):
        value = casefold_path(value)
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"\0{argument}\0{encode(value).decode()}"
