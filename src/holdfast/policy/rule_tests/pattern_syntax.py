"""The syntax of the rule test `matches`: a pattern as a tree of character sets, concatenations, alternatives and repetitions.

`text_patterns` compiles the tree, and `required_literals` finds what every match of it contains.
"""

import re
from typing import NamedTuple, NoReturn

MAX_PATTERN_LENGTH = 500
_MAX_DEPTH = 20
_LAST = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]
"""Sorted ranges of code points that do not touch."""


class PatternError(Exception):
    """A text is not a supported pattern. The message says what and where."""


class CharacterSet(NamedTuple):
    ranges: Ranges


class Concatenation(NamedTuple):
    parts: "tuple[PatternNode, ...]"


class Alternatives(NamedTuple):
    parts: "tuple[PatternNode, ...]"


class Repetition(NamedTuple):
    part: "PatternNode"
    least: int
    most: int | None


PatternNode = CharacterSet | Concatenation | Alternatives | Repetition


def _ranges(*pairs: tuple[int, int]) -> Ranges:
    found: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def _complement(ranges: Ranges) -> Ranges:
    edges = [-1, *(edge for pair in ranges for edge in pair), _LAST + 1]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in pairs if low + 1 <= high - 1)


def _one(character: str) -> Ranges:
    return ((ord(character), ord(character)),)


_DIGITS = _ranges((48, 57))
_WORD = _ranges((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE = _ranges((9, 13), (32, 32))
_ANY = _complement(_one("\n"))
_ESCAPES: dict[str, Ranges] = {
    "d": _DIGITS, "w": _WORD, "s": _SPACE, "D": _complement(_DIGITS), "W": _complement(_WORD), "S": _complement(_SPACE),
    "n": _one("\n"), "t": _one("\t"), "r": _one("\r"),
}  # fmt: skip
_COUNT = re.compile(r"\{(\d{1,4})(?:(,)(\d{1,4})?)?\}")


class PatternParser:
    """Reads a pattern to a tree."""

    def __init__(self, pattern: str, *, ignores_case: bool) -> None:
        if not pattern or len(pattern) > MAX_PATTERN_LENGTH:
            raise PatternError(f"a pattern has 1 to {MAX_PATTERN_LENGTH} characters")
        self._text = pattern
        self._at = 0
        self._ignores_case = ignores_case
        self.has_start = pattern.startswith("^")
        self.has_end = bool(re.search(r"(?<!\\)(\\\\)*\$\Z", pattern))

    def parse(self) -> PatternNode:
        """The tree of the whole pattern."""
        self._at = int(self.has_start)
        self._end = len(self._text) - int(self.has_end)
        tree = self._choice(0)
        if self._at < self._end:
            self._fail("this parenthesis was never opened")
        if (self.has_start or self.has_end) and isinstance(tree, Alternatives):
            self._at = 0
            self._fail("with `^` or `$`, put the alternatives in parentheses")
        return tree

    def _fail(self, problem: str) -> NoReturn:
        raise PatternError(f"{problem} (at character {self._at + 1})")

    def _next(self) -> str:
        return self._text[self._at] if self._at < self._end else ""

    def _choice(self, depth: int) -> PatternNode:
        if depth > _MAX_DEPTH:
            self._fail(f"parentheses are nested more than {_MAX_DEPTH} deep")
        parts = [self._sequence(depth)]
        while self._next() == "|":
            self._at += 1
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else Alternatives(tuple(parts))

    def _sequence(self, depth: int) -> PatternNode:
        parts: list[PatternNode] = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom(depth)))
        return Concatenation(tuple(parts))

    def _repeated(self, node: PatternNode) -> PatternNode:
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
        return Repetition(node, least, most)

    def _atom(self, depth: int) -> PatternNode:
        character = self._next()
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return CharacterSet(self._set())
            case ".":
                self._at += 1
                return CharacterSet(_ANY)
            case "\\":
                return CharacterSet(self._escape())
            case "*" | "+" | "?" | "{":
                self._fail("there is nothing to repeat")
            case "^" | "$":
                self._fail(
                    f"`{character}` is supported only at the ends; write `\\{character}` for the character"
                )
            case _:
                pass
        self._at += 1
        return CharacterSet(self._cased(_one(character)))

    def _group(self, depth: int) -> PatternNode:
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

    def _escape(self) -> Ranges:
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

    def _set(self) -> Ranges:
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

    def _set_member(self) -> Ranges:
        character = self._next()
        if character == "\\":
            return self._escape()
        if not character:
            self._fail("expected `]`")
        if character == "[":
            self._fail("write `\\[` for a bracket")
        self._at += 1
        return _one(character)

    def _cased(self, ranges: Ranges) -> Ranges:
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


def required_literals(node: PatternNode) -> frozenset[str] | None:
    """Texts one of which every match contains, in lower case; None if there are none. Only ASCII, which has two cases."""
    match node:
        case CharacterSet():
            letter = _letter(node)
            return frozenset([letter]) if letter else None
        case Concatenation():
            found = [required_literals(part) for part in node.parts if not isinstance(part, CharacterSet)]
            run = ""
            for part in node.parts:
                letter = _letter(part) if isinstance(part, CharacterSet) else ""
                run = run + letter if letter else ""
                found.append(frozenset([run]) if run else None)
            return max((each for each in found if each), key=lambda each: min(map(len, each)), default=None)
        case Alternatives():
            each_part = [required_literals(part) for part in node.parts]
            known = [each for each in each_part if each is not None]
            return frozenset().union(*known) if len(known) == len(each_part) else None
        case Repetition():
            return required_literals(node.part) if node.least else None


def _letter(characters: CharacterSet) -> str:
    """The one ASCII character that a set stands for, in either case; empty for any other set."""
    codes = {code for low, high in characters.ranges[:2] for code in (low, high)}
    is_single = len(characters.ranges) <= 2 and all(low == high for low, high in characters.ranges)
    lower = {chr(code).lower() for code in codes}
    return lower.pop() if is_single and len(lower) == 1 and max(codes) < 128 else ""
