r"""Regular expressions that match in linear time, for the rule test `matches`.

A guest chooses the text and a project may choose the pattern, so matching must never backtrack. A pattern is compiled when the
policy is loaded, to a deterministic automaton (a position automaton, then its subsets): matching is one table lookup for each
character, whatever the text. A pattern whose automaton would have more than `MAX_STATES` states is refused.

Supported: literals, `.` (any character but a line break), `[a-z]`, `[^a-z]`, `\d \w \s \D \W \S` (ASCII), `( )`, `(?: )`, `|`, `* + ?`,
`{n} {n,} {n,m}`, and `^` and `$` at the ends. Not the re module, which takes exponential time for some patterns, and not a
library: this is small, and needs no compiled code on any platform.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from holdfast.policy.rule_tests.pattern_syntax import (
    Alternatives,
    CharacterSet,
    Concatenation,
    PatternError,
    PatternNode,
    PatternParser,
    Ranges,
    Repetition,
    required_literals,
)

MAX_POSITIONS = 500
"""Characters of a pattern, each counted as often as its repetitions need."""
MAX_STATES = 10_000
"""About 50 ms of compiling. Patterns that find keys in a text need up to 4,000."""
MAX_CLASSES = 250
_LEAST_COST, _COST_OF_A_POSITION = 1000, 20


class TextPattern:
    """One compiled pattern. Raises PatternError.

    The narrow reading matches the whole text. The wide reading (`for_deny`) ignores case and finds the pattern anywhere.
    """

    def __init__(self, pattern: str, *, for_deny: bool = False) -> None:
        parsed = PatternParser(pattern, ignores_case=for_deny)
        tree = parsed.parse()
        self.literals = required_literals(tree)
        """Texts one of which every match contains, in lower case; None if there are none."""
        self._automaton = _Automaton(
            tree, is_open_start=for_deny and not parsed.has_start, is_open_end=for_deny and not parsed.has_end
        )

    @property
    def cost(self) -> int:
        """What it took to compile, in steps of about 0.4 microseconds and 4 bytes."""
        return self._automaton.cost

    def matches(self, text: str) -> bool:
        """Whether the text matches."""
        return self._automaton.accepts(text)


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str, for_deny: bool) -> TextPattern:
    """A compiled pattern, kept. Raises PatternError."""
    return TextPattern(pattern, for_deny=for_deny)


class _Automaton:
    """The deterministic automaton of a tree: a table of states by character classes. State 0 is dead."""

    def __init__(self, tree: PatternNode, *, is_open_start: bool, is_open_end: bool) -> None:
        self._characters: list[Ranges] = []
        self._follow: list[int] = []
        self.cost = _LEAST_COST
        nullable, first, last = self._visit(tree)
        self._classes, members = self._partition()
        self._is_open_end = is_open_end
        start = -1  # no position yet; every other state is the set of positions just read, as bits
        numbers = {0: 0, start: 1}
        self._table: list[list[int]] = [[0] * len(members)]
        self._accepting = [False]
        waiting = [start]
        while waiting:
            state = waiting.pop(0)
            can_begin = state == start or is_open_start
            is_accepting = (nullable and can_begin) or (state != start and bool(state & last))
            self._accepting.append(is_accepting)
            if is_accepting and is_open_end:
                self._table.append([numbers[state]] * len(members))
                continue
            following = first if can_begin else 0
            following |= 0 if state == start else self._followers(state)
            row: list[int] = []
            for member in members:
                # With an open start, no position read is not the end: the pattern may begin later.
                after = (following & member) or (start if is_open_start else 0)
                if after not in numbers:
                    if len(numbers) > MAX_STATES:
                        raise PatternError(
                            f"needs more than {MAX_STATES:,} states; a shorter repetition is usually enough"
                        )
                    numbers[after] = len(numbers)
                    waiting.append(after)
                row.append(numbers[after])
            self._table.append(row)
        self.cost += 2 * len(self._table) * len(members)

    def accepts(self, text: str) -> bool:
        """Whether the text is accepted: one table lookup for each character."""
        table, state = self._table, 1
        accepting = self._accepting if self._is_open_end else ()
        if accepting and accepting[1]:
            return True
        for number in text.translate(self._classes):
            state = table[state][ord(number)]
            if not state:
                return False
            if accepting and accepting[state]:
                return True
        return self._accepting[state]

    def _visit(self, node: PatternNode) -> tuple[bool, int, int]:
        """Whether a node can be empty, and its first and last positions as bits."""
        match node:
            case CharacterSet():
                if len(self._characters) >= MAX_POSITIONS:
                    raise PatternError(f"needs more than {MAX_POSITIONS} characters, repetitions included")
                self._characters.append(node.ranges)
                self.cost += _COST_OF_A_POSITION
                self._follow.append(0)
                bit = 1 << (len(self._characters) - 1)
                return False, bit, bit
            case Concatenation():
                return self._join([self._visit(part) for part in node.parts])
            case Alternatives():
                parts = [self._visit(part) for part in node.parts]
                first = last = 0
                for _, begins, ends in parts:
                    first, last = first | begins, last | ends
                return any(part[0] for part in parts), first, last
            case Repetition():
                return self._visit_repeat(node)

    def _visit_repeat(self, node: Repetition) -> tuple[bool, int, int]:
        copies = [self._visit(node.part) for _ in range(node.least)]
        if node.most is None:
            _, first, last = self._visit(node.part)
            self._link(last, first)
            copies.append((True, first, last))
        else:
            copies += [(True, *self._visit(node.part)[1:]) for _ in range(node.most - node.least)]
        return self._join(copies)

    def _join(self, parts: Sequence[tuple[bool, int, int]]) -> tuple[bool, int, int]:
        nullable, first, last = True, 0, 0
        for is_empty, begins, ends in parts:
            self._link(last, begins)
            first = first | begins if nullable else first
            last = last | ends if is_empty else ends
            nullable = nullable and is_empty
        return nullable, first, last

    def _link(self, last: int, first: int) -> None:
        for position in self._bits(last):
            self._follow[position] |= first

    def _followers(self, state: int) -> int:
        found = 0
        for position in self._bits(state):
            found |= self._follow[position]
        return found

    def _bits(self, mask: int) -> list[int]:
        found: list[int] = []
        while mask:
            low = mask & -mask
            found.append(low.bit_length() - 1)
            mask ^= low
        self.cost += len(found)
        return found

    def _partition(self) -> "tuple[_ClassMap, list[int]]":
        """The classes of characters that no position tells apart: by character, and the positions of each class as bits."""
        cuts = sorted(
            {0} | {edge for ranges in self._characters for low, high in ranges for edge in (low, high + 1)}
        )
        self.cost += len(cuts) * len(self._characters)
        numbers: dict[int, int] = {}
        classes: list[int] = []
        for cut in cuts:
            members = 0
            for position, ranges in enumerate(self._characters):
                if any(low <= cut <= high for low, high in ranges):
                    members |= 1 << position
            classes.append(numbers.setdefault(members, len(numbers)))
        if len(numbers) > MAX_CLASSES:
            raise PatternError(f"tells more than {MAX_CLASSES} kinds of characters apart")
        return _ClassMap(cuts, classes), list(numbers)


class _ClassMap(dict[int, str]):
    """From a code point to its class, for `str.translate`. Only ASCII is kept: a guest's text must not fill the memory."""

    def __init__(self, cuts: list[int], classes: list[int]) -> None:
        super().__init__()
        self._cuts, self._numbers = cuts, classes
        for code in range(128):
            self[code] = self[code]

    def __missing__(self, code: int) -> str:
        return chr(self._numbers[bisect_right(self._cuts, code) - 1])
