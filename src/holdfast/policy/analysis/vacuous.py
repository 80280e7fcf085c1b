"""Finds tests that can never pass, and tests that another test of the same rule covers."""

from collections.abc import Iterator, Mapping

from holdfast.core import Role, Tool, split_argv
from holdfast.policy.analysis.subsumption import prefix_subsumes
from holdfast.policy.document import ArgumentTest, Rule, matches_operation
from holdfast.policy.facts import HOST_GROUPS, has_tier
from holdfast.policy.rule_tests.arguments import passes, steps_of
from holdfast.policy.urls import GROUP_PREFIX


def vacuous_tests(rule: Rule, tools: Mapping[str, Tool]) -> Iterator[str]:
    """What is wrong with each test that never passes, as far as that is certain."""
    matched = [tool for tool in tools.values() if _matches(rule, tool)]
    is_known = bool(matched) and all(
        any(matches_operation(pattern, tool.name) for tool in matched) and not pattern.startswith("*")
        for pattern in rule.operations
    )
    if rule.tiers and is_known and not any(has_tier(tool) for tool in matched):
        yield "tests the `tier` of operations that run no command"
    for name, test in (("paths", rule.paths), ("hosts", rule.hosts), ("commands", rule.commands)):
        if test is not None and is_known and not any(_has_role(tool, test.roles) for tool in matched):
            yield f"tests the `{name}` of operations that have none"
    for pattern in rule.hosts.patterns if rule.hosts is not None else ():
        if pattern.startswith(GROUP_PREFIX) and pattern.removeprefix(GROUP_PREFIX) not in HOST_GROUPS:
            yield f"names the hosts {pattern!r}; the groups are {', '.join(HOST_GROUPS)}"
    yield from _vacuous_commands(rule)
    for argument in rule.arguments:
        yield from _vacuous_argument(rule, argument, matched if is_known else [])


def redundant_tests(rule: Rule) -> Iterator[str]:
    """The prefixes of commands and texts that a shorter one of the same rule covers."""
    prefixes = rule.commands.prefixes if rule.commands is not None else ()
    for number, prefix in enumerate(prefixes):
        for other_number, other in enumerate(prefixes):
            if (
                number != other_number
                and prefix_subsumes(other, prefix)
                and (other != prefix or other_number < number)
            ):
                yield f"lists the command {_words(prefix)}, which {_words(other)} covers"
                break
    for test in rule.arguments:
        for text in test.prefixes:
            if any(text != other and text.startswith(other) for other in test.prefixes):
                yield f"lists the prefix {text!r} of {test.argument!r}, which a shorter one covers"


def _vacuous_commands(rule: Rule) -> Iterator[str]:
    if rule.commands is None or rule.is_restrictive:
        return
    for prefix in rule.commands.prefixes:
        for program in prefix[0]:
            if split_argv([program, *(words[0] for words in prefix[1:])]).is_opaque:
                yield f"allows {_words(prefix)}, but {program!r} runs other commands, so it is never certain what runs"


def _vacuous_argument(rule: Rule, test: ArgumentTest, tools: list[Tool]) -> Iterator[str]:
    name = steps_of(test.argument)[0]
    is_empty = (test.at_least is not None and test.at_most is not None and test.at_least > test.at_most) or (
        test.shortest is not None and test.longest is not None and test.shortest > test.longest
    )
    if is_empty:
        yield f"has a test of {test.argument!r} whose bounds exclude every value"
    elif test.one_of and not any(passes(test, value, for_deny=rule.is_restrictive) for value in test.one_of):
        yield f"has a test of {test.argument!r} that none of its own values passes"
    if tools and all(_takes_no(tool, name) for tool in tools):
        yield f"tests the argument {name!r}, which its operations do not have"


def _takes_no(tool: Tool, argument: str) -> bool:
    properties = tool.parameters.get("properties")
    named = properties if isinstance(properties, dict) else tool.roles or {}
    return argument not in named and argument not in (tool.roles or {})


def _matches(rule: Rule, tool: Tool) -> bool:
    return any(matches_operation(pattern, tool.name) for pattern in rule.operations)


def _has_role(tool: Tool, roles: tuple[Role, ...]) -> bool:
    wanted = set(roles)
    return any(
        wanted & {*one.default, *(role for when in one.when for role in when.roles)}
        for one in (tool.roles or {}).values()
    )


def _words(prefix: tuple[tuple[str, ...], ...]) -> str:
    return repr(" ".join("|".join(words) for words in prefix))
