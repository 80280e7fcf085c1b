"""Tests of command words: `commands`, argument-list prefixes in which each word may have alternatives.

The narrow reading needs exactly these words: the program by its bare name or from a system folder, no environment of the
caller's, and a command that is certain. The wide reading ignores letter case and the program's folder, skips options and
their values between the words, finds options in any place, and tries every word of an opaque script. Neither is a wall: a
program that may run can run others.
"""

from collections.abc import Sequence, Set

from holdfast.core import CommandTarget, Target
from holdfast.policy.contract import Request
from holdfast.policy.document import CommandTest, WordAlternatives
from holdfast.policy.rule_tests.contract import TargetTest

SYSTEM_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/")
MAX_SKIPPED = 16
"""Words that are skipped at most between two words of a prefix. The guest chooses the script, so the search has a limit."""


class CommandMatcher(TargetTest):
    """`commands`."""

    mismatch = "the command does not begin with its words"

    def __init__(self, test: CommandTest, *, for_deny: bool) -> None:
        self.roles = frozenset(test.roles)
        self._for_deny = for_deny
        self._prefixes = tuple(map(_folded, test.prefixes)) if for_deny else test.prefixes

    def mismatch_of(self, target: Target | None) -> str:
        if isinstance(target, CommandTarget) and not self._for_deny:
            if target.is_opaque:
                return "the script is opaque: what it runs is not certain"
            if target.sets_environment:
                return "the call sets environment variables, which can change what a program name means"
        return self.mismatch

    def matches(self, target: Target, request: Request) -> bool:
        if not isinstance(target, CommandTarget) or target.is_opaque:
            return False
        if not self._for_deny:
            return not target.sets_environment and any(
                begins_with(target.words, prefix) for prefix in self._prefixes
            )
        return self._mentioned(target.words, range(1))

    def matches_part(self, target: Target, request: Request) -> bool:
        if not isinstance(target, CommandTarget) or not target.is_opaque:
            return self.matches(target, request)
        return self._for_deny and self._mentioned(target.words, range(len(target.words)))

    def index_keys(self) -> frozenset[str] | None:
        return frozenset(program_key(program) for prefix in self._prefixes for program in prefix[0])

    def _mentioned(self, given: Sequence[str], places: range) -> bool:
        words = [word.casefold() for word in given]
        options = {option for word in words for option in (word, word.partition("=")[0])}
        return any(_mentions(words, at, prefix, options) for at in places for prefix in self._prefixes)


def begins_with(words: Sequence[str], prefix: Sequence[WordAlternatives]) -> bool:
    """The narrow reading: whether a command begins with exactly these words."""
    if not words or len(words) < len(prefix):
        return False
    program = words[0]
    bare = next((program[len(each) :] for each in SYSTEM_FOLDERS if program.startswith(each)), program)
    if program not in prefix[0] and ("/" in bare or bare not in prefix[0]):
        return False
    return all(word in wanted for word, wanted in zip(words[1:], prefix[1:], strict=False))


def program_key(program: str) -> str:
    """The name by which the index knows a program: without its folder and in lower case."""
    return program.rpartition("/")[2].casefold()


def _mentions(words: Sequence[str], at: int, prefix: Sequence[WordAlternatives], options: Set[str]) -> bool:
    """The wide reading of the command that starts at this place, for words and a prefix in lower case."""
    if at >= len(words) or words[at].rpartition("/")[2] not in prefix[0]:
        return False
    for wanted in prefix[1:]:
        if all(word.startswith("-") for word in wanted):
            if options.isdisjoint(wanted):
                return False
        else:
            found = _next(words, at + 1, wanted)
            if found is None:
                return False
            at = found
    return True


def _next(words: Sequence[str], at: int, wanted: WordAlternatives) -> int | None:
    """The place of the next wanted word, if only options and their values come before it."""
    is_after_option = False
    for place in range(at, min(len(words), at + MAX_SKIPPED + 1)):
        if words[place] in wanted:
            return place
        is_option = words[place].startswith("-")
        if not is_option and not is_after_option:
            return None
        is_after_option = is_option
    return None


def _folded(prefix: tuple[WordAlternatives, ...]) -> tuple[WordAlternatives, ...]:
    first = tuple(program_key(word) for word in prefix[0])
    return (first, *(tuple(word.casefold() for word in wanted) for wanted in prefix[1:]))
