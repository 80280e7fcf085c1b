r"""Regular expressions that match in linear time, for the rule test `matches`.

A guest chooses the text and a project may choose the pattern, so matching must never backtrack. A pattern is compiled when the
policy is loaded, to a deterministic automaton (a position automaton, then its subsets): matching is one table lookup for each
character, whatever the text. A pattern whose automaton would have more than `MAX_STATES` states is refused.

Supported: literals, `.` (any character but a line break), `[a-z]`, `[^a-z]`, `\d \w \s \D \W \S` (ASCII), `( )`, `(?: )`, `|`, `* + ?`,
`{n} {n,} {n,m}`, and `^` and `$` at the ends. Not the re module, which takes exponential time for some patterns, and not a
library: this is small, and needs no compiled code on any platform.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, NoReturn

MAX_PATTERN_LENGTH = 500
MAX_POSITIONS = 500
"""Characters of a pattern, each counted as often as its repetitions need."""
MAX_STATES = 10_000
"""About 50 ms of compiling. Patterns that find keys in a text need up to 4,000."""
MAX_CLASSES = 250
_MAX_DEPTH = 20
_LAST = 0x10FFFF

_Ranges = tuple[tuple[int, int], ...]
"""Sorted ranges of code points that do not touch."""


class PatternError(Exception):
    """A text is not a supported pattern. The message says what and where."""


class _Characters(NamedTuple):
    ranges: _Ranges


class _Sequence(NamedTuple):
    parts: "tuple[_Node, ...]"


class _Choice(NamedTuple):
    parts: "tuple[_Node, ...]"


class _Repeat(NamedTuple):
    part: "_Node"
    least: int
    most: int | None


_Node = _Characters | _Sequence | _Choice | _Repeat


class TextPattern:
    """One compiled pattern. Raises PatternError.

    The narrow reading matches the whole text. The wide reading (`for_deny`) ignores case and finds the pattern anywhere.
    """

    def __init__(self, pattern: str, *, for_deny: bool = False) -> None:
        parsed = _Parser(pattern, ignores_case=for_deny)
        tree = parsed.parse()
        self._automaton = _Automaton(
            tree, is_open_start=for_deny and not parsed.has_start, is_open_end=for_deny and not parsed.has_end
        )

    def matches(self, text: str) -> bool:
        """Whether the text matches."""
        return self._automaton.accepts(text)


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str, for_deny: bool) -> TextPattern:
    """A compiled pattern, kept. Raises PatternError."""
    return TextPattern(pattern, for_deny=for_deny)


def _ranges(*pairs: tuple[int, int]) -> _Ranges:
    found: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def _complement(ranges: _Ranges) -> _Ranges:
    edges = [-1, *(edge for pair in ranges for edge in pair), _LAST + 1]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in pairs if low + 1 <= high - 1)


def _one(character: str) -> _Ranges:
    return ((ord(character), ord(character)),)


_DIGITS = _ranges((48, 57))
_WORD = _ranges((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE = _ranges((9, 13), (32, 32))
_ANY = _complement(_one("\n"))
_ESCAPES: dict[str, _Ranges] = {
    "d": _DIGITS, "w": _WORD, "s": _SPACE, "D": _complement(_DIGITS), "W": _complement(_WORD), "S": _complement(_SPACE),
    "n": _one("\n"), "t": _one("\t"), "r": _one("\r"),
}  # fmt: skip
_COUNT = re.compile(r"\{(\d{1,4})(?:(,)(\d{1,4})?)?\}")


class _Parser:
    """Reads a pattern to a tree."""

    def __init__(self, pattern: str, *, ignores_case: bool) -> None:
        if not pattern or len(pattern) > MAX_PATTERN_LENGTH:
            raise PatternError(f"a pattern has 1 to {MAX_PATTERN_LENGTH} characters")
        self._text = pattern
        self._at = 0
        self._ignores_case = ignores_case
        self.has_start = pattern.startswith("^")
        self.has_end = bool(re.search(r"(?<!\\)(\\\\)*\$\Z", pattern))

    def parse(self) -> _Node:
        """The tree of the whole pattern."""
        self._at = int(self.has_start)
        self._end = len(self._text) - int(self.has_end)
        tree = self._choice(0)
        if self._at < self._end:
            self._fail("this parenthesis was never opened")
        if (self.has_start or self.has_end) and isinstance(tree, _Choice):
            self._at = 0
            self._fail("with `^` or `$`, put the alternatives in parentheses")
        return tree

    def _fail(self, problem: str) -> NoReturn:
        raise PatternError(f"{problem} (at character {self._at + 1})")

    def _next(self) -> str:
        return self._text[self._at] if self._at < self._end else ""

    def _choice(self, depth: int) -> _Node:
        if depth > _MAX_DEPTH:
            self._fail(f"parentheses are nested more than {_MAX_DEPTH} deep")
        parts = [self._sequence(depth)]
        while self._next() == "|":
            self._at += 1
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else _Choice(tuple(parts))

    def _sequence(self, depth: int) -> _Node:
        parts: list[_Node] = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom(depth)))
        return _Sequence(tuple(parts))

    def _repeated(self, node: _Node) -> _Node:
        counted = _COUNT.match(self._text, self._at, self._end)
        if counted is not None:
            least = int(counted[1])
            most = least if counted[2] is None else int(counted[3]) if counted[3] is not None else None
            if most is not None and most < least:
                self._fail("the bounds of this repetition are reversed")
            self._at = counted.end()
        elif self._next() in ("*", "+", "?") and self._next():
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self._next()]
            self._at += 1
        elif self._next() == "{":
            self._fail("expected `{n}`, `{n,}` or `{n,m}`; write `\\{` for a brace")
        else:
            return node
        if self._next() in ("*", "+", "?", "{") and self._next():
            self._fail("lazy, possessive and repeated repetitions are not supported")
        return _Repeat(node, least, most)

    def _atom(self, depth: int) -> _Node:
        character = self._next()
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return _Characters(self._set())
            case ".":
                self._at += 1
                return _Characters(_ANY)
            case "\\":
                return _Characters(self._escape())
            case "*" | "+" | "?" | "{":
                self._fail("there is nothing to repeat")
            case "^" | "$":
                self._fail(
                    f"`{character}` is supported only at the ends; write `\\{character}` for the character"
                )
            case _:
                pass
        self._at += 1
        return _Characters(self._cased(_one(character)))

    def _group(self, depth: int) -> _Node:
        self._at += 1
        if self._next() == "?":
            if not self._text.startswith("?:", self._at):
                self._fail("look-around, references and flags are not supported; `(?: )` and `( )` are")
            self._at += 2
        tree = self._choice(depth + 1)
        if self._next() != ")":
            self._fail("expected `)`")
        self._at += 1
        return tree

    def _escape(self) -> _Ranges:
        self._at += 1
        character = self._next()
        if not character:
            self._fail("expected a character after `\\`")
        if character in _ESCAPES:
            found = _ESCAPES[character]
        elif character.isalnum():
            self._fail(f"`\\{character}` is not supported")
        else:
            found = _one(character)
        self._at += 1
        return found

    def _set(self) -> _Ranges:
        self._at += 1
        is_negated = self._next() == "^"
        self._at += is_negated
        pairs: list[tuple[int, int]] = []
        while self._next() != "]" or not pairs:
            if not self._next():
                self._fail("expected `]`")
            first = self._set_member()
            is_range = self._next() == "-" and self._text[self._at + 1 : self._at + 2] != "]"
            if is_range and len(first) == 1 and first[0][0] == first[0][1]:
                self._at += 1
                last = self._set_member()
                if len(last) != 1 or last[0][0] != last[0][1] or last[0][0] < first[0][0]:
                    self._fail("this range is reversed, or does not end in a character")
                first = ((first[0][0], last[0][0]),)
            pairs += first
        self._at += 1
        found = _ranges(*pairs)
        return _complement(found) if is_negated else self._cased(found)

    def _set_member(self) -> _Ranges:
        character = self._next()
        if character == "\\":
            return self._escape()
        if not character:
            self._fail("expected `]`")
        if character == "[":
            self._fail("write `\\[` for a bracket")
        self._at += 1
        return _one(character)

    def _cased(self, ranges: _Ranges) -> _Ranges:
        """The characters in both cases, if case is ignored. Ranges beyond ASCII stay as they are."""
        if not self._ignores_case:
            return ranges
        others = [
            ord(other)
            for low, high in ranges
            for code in (range(low, min(high, 127) + 1) if high - low > 0 else (low,))
            for other in (chr(code).lower(), chr(code).upper())
            if len(other) == 1
        ]
        return _ranges(*ranges, *((code, code) for code in others))


class _Automaton:
    """The deterministic automaton of a tree: a table of states by character classes. State 0 is dead."""

    def __init__(self, tree: _Node, *, is_open_start: bool, is_open_end: bool) -> None:
        self._characters: list[_Ranges] = []
        self._follow: list[int] = []
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

    def _visit(self, node: _Node) -> tuple[bool, int, int]:
        """Whether a node can be empty, and its first and last positions as bits."""
        match node:
            case _Characters():
                if len(self._characters) >= MAX_POSITIONS:
                    raise PatternError(f"needs more than {MAX_POSITIONS} characters, repetitions included")
                self._characters.append(node.ranges)
                self._follow.append(0)
                bit = 1 << (len(self._characters) - 1)
                return False, bit, bit
            case _Sequence():
                return self._join([self._visit(part) for part in node.parts])
            case _Choice():
                parts = [self._visit(part) for part in node.parts]
                first = last = 0
                for _, begins, ends in parts:
                    first, last = first | begins, last | ends
                return any(part[0] for part in parts), first, last
            case _Repeat():
                return self._visit_repeat(node)

    def _visit_repeat(self, node: _Repeat) -> tuple[bool, int, int]:
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
        for position in _bits(last):
            self._follow[position] |= first

    def _followers(self, state: int) -> int:
        found = 0
        for position in _bits(state):
            found |= self._follow[position]
        return found

    def _partition(self) -> "tuple[_ClassMap, list[int]]":
        """The classes of characters that no position tells apart: by character, and the positions of each class as bits."""
        cuts = sorted(
            {0} | {edge for ranges in self._characters for low, high in ranges for edge in (low, high + 1)}
        )
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


def _bits(mask: int) -> list[int]:
    found: list[int] = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
