"""Unified diffs of texts of any size, in bounded time.

`difflib` compares every line with every other in the worst case. A long text is therefore first split at lines that both sides
share: lines that occur once on each side; where that leaves too much, groups of lines that do; then the first, second, third ...
occurrence of each line. `difflib` compares the parts between them. A part that is still too long is shown as removed and added.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import islice

CONTEXT_LINES = 3
MAX_TEXT_BYTES = 64 << 20
"""In memory, of both texts together, as are the next two. A text with one emoji takes four bytes a character."""
MAX_LINE_CHARACTERS = 4 << 20
"""A person cannot read a longer line, and an invisible character in it is shown as eight."""
MAX_LINES = 4_000_000
MAX_DIFFERENT_LINES = 1_200_000
MAX_COMPARED_LINES = 3000
"""Of one part, on each side."""
MAX_COMPARISONS = 20_000_000
"""Of all parts together: lines of one side times lines of the other."""

_GROUP_LINES = 8
_JOINED_LINES = 1000
"""Joined at a time: a list of all lines would take more memory than their text."""
_PIECE_CHARACTERS = 1 << 20
_NO_NEWLINE = "\n\\ No newline at end of file\n"
_ABSENT, _REPEATED = -1, -2
_Lines = Sequence[int]
"""A text: the number of each line."""
_Pair = tuple[int, int]
"""The places of a line that both sides share."""
_Anchoring = Callable[[_Lines, _Lines], Iterable[_Pair]]
"""Finds lines at which to split two texts, in the order of the first."""


def unified_diff(old: str, new: str, names: tuple[str, str]) -> str | None:
    """The diff with three lines of context, which `git apply` can apply; None if the texts have too many or too long lines."""
    if old.count("\n") + new.count("\n") > MAX_LINES or _has_long_line(old) or _has_long_line(new):
        return None
    if _is_one_sided(old, new):
        return _one_sided_diff(old, new, names)
    numbers: dict[str, int] = {}
    before, after = _numbered(old, numbers), _numbered(new, numbers)
    if len(numbers) > MAX_DIFFERENT_LINES:
        return None
    lines, parts = list(numbers), list[str]()
    for group in _Comparison(before, after).get_grouped_opcodes(CONTEXT_LINES):
        hunk = _hunk(before, after, group, lines)
        while part := "".join(islice(hunk, _JOINED_LINES)):
            parts.append(part)
    return "".join((f"--- {names[0]}\n+++ {names[1]}\n", *parts)) if parts else ""


def _is_one_sided(old: str, new: str) -> bool:
    return bool(old) != bool(new) and old.count("\n") + new.count("\n") < MAX_DIFFERENT_LINES


def _one_sided_diff(old: str, new: str, names: tuple[str, str]) -> str:
    """The diff of a text that is all removed or all added: the same as by comparison, without an object for each line."""
    text, sign = (old, "-") if old else (new, "+")
    breaks, is_ended = text.count("\n"), text.endswith("\n")
    place = _range(0, breaks if is_ended else breaks + 1)
    ranges = f"-{place} +{_range(0, 0)}" if old else f"-{_range(0, 0)} +{place}"
    diff = f"--- {names[0]}\n+++ {names[1]}\n@@ {ranges} @@\n{sign}"
    end = len(text) - is_ended
    for start in range(0, end, _PIECE_CHARACTERS):
        # Appended in place: joining the parts would take the memory of the text twice.
        diff += text[start : min(start + _PIECE_CHARACTERS, end)].replace("\n", f"\n{sign}")
    diff += "\n" if is_ended else _NO_NEWLINE
    return diff


def _has_long_line(text: str) -> bool:
    start = 0
    while len(text) - start > MAX_LINE_CHARACTERS:
        start = text.rfind("\n", start, start + MAX_LINE_CHARACTERS + 1) + 1
        if start == 0:
            return True
    return False


def _numbered(text: str, numbers: dict[str, int]) -> _Lines:
    """The lines of a text as numbers: a million of them take 8 MB, and equal ones share their text."""
    # Not splitlines, which also splits at form feeds; diffs split only at line feeds.
    found, start = array("q"), 0
    while start < len(text) and len(numbers) <= MAX_DIFFERENT_LINES:
        end = text.find("\n", start) + 1 or len(text)
        found.append(numbers.setdefault(text[start:end], len(numbers)))
        start = end
    return found


class _Comparison(SequenceMatcher[int]):
    """`difflib`'s grouping of changes into hunks, over matches that are found in bounded time."""

    def __init__(self, before: _Lines, after: _Lines) -> None:
        super().__init__(a=(), b=())  # without the texts, which it would index
        self.a, self.b = before, after
        self._comparisons_left = MAX_COMPARISONS

    def get_matching_blocks(self) -> list[Match]:
        """The parts that both sides share, in order, and an empty one at the end."""
        blocks: list[Match] = []
        a = b = size = 0
        end = (len(self.a), len(self.b))
        for next_a, next_b, next_size in self._matches((0, 0), end, _ANCHORINGS):
            if (a + size, b + size) == (next_a, next_b):
                size += next_size
            elif next_size:
                blocks.append(Match(a, b, size))
                a, b, size = next_a, next_b, next_size
        return [*blocks, Match(a, b, size), Match(*end, 0)]

    def _matches(
        self, start: _Pair, end: _Pair, anchorings: tuple[_Anchoring, ...]
    ) -> Iterator[tuple[int, int, int]]:
        """The shared parts between two places."""
        a, b = start
        head = _shared_length(self.a, self.b, range(a, end[0]), range(b, end[1]))
        yield a, b, head
        a, b = a + head, b + head
        tail = _shared_length(self.a, self.b, range(end[0] - 1, a - 1, -1), range(end[1] - 1, b - 1, -1))
        stop = (end[0] - tail, end[1] - tail)
        one, other = stop[0] - a, stop[1] - b
        if max(one, other) <= MAX_COMPARED_LINES:
            if one and other and one * other <= self._comparisons_left:
                self._comparisons_left -= one * other
                inner = SequenceMatcher(None, self.a[a : stop[0]], self.b[b : stop[1]])
                yield from ((a + each.a, b + each.b, each.size) for each in inner.get_matching_blocks())
        elif one and other and anchorings:
            place = (a, b)
            for anchor in _longest_rise(anchorings[0](self.a[a : stop[0]], self.b[b : stop[1]])):
                here = (a + anchor[0], b + anchor[1])
                if here != place:
                    yield from self._matches(place, here, anchorings[1:])
                yield *here, 1
                place = (here[0] + 1, here[1] + 1)
            yield from self._matches(place, stop, anchorings[1:])
        yield *stop, tail


def _hunk(
    before: _Lines, after: _Lines, group: Sequence[tuple[str, int, int, int, int]], lines: Sequence[str]
) -> Iterator[str]:
    (_, a, _, b, _), (_, _, a_end, _, b_end) = group[0], group[-1]
    yield f"@@ -{_range(a, a_end)} +{_range(b, b_end)} @@\n"
    for tag, a, a_end, b, b_end in group:
        if tag == "equal":
            yield from (_with_newline(f" {lines[number]}") for number in before[a:a_end])
        else:
            yield from (_with_newline(f"-{lines[number]}") for number in before[a:a_end])
            yield from (_with_newline(f"+{lines[number]}") for number in after[b:b_end])


def _range(start: int, stop: int) -> str:
    """A range of lines as a hunk's header has it: counted from 1; an empty one is named by the line before it."""
    length = stop - start
    return str(start + 1) if length == 1 else f"{start + bool(length)},{length}"


def _with_newline(line: str) -> str:
    return line if line.endswith("\n") else f"{line}{_NO_NEWLINE}"


def _shared_length(one: _Lines, other: _Lines, places: range, other_places: range) -> int:
    """How many lines are equal, from the first places on."""
    length = 0
    for a, b in zip(places, other_places, strict=False):
        if one[a] != other[b]:
            break
        length += 1
    return length


def _unique(before: _Lines, after: _Lines) -> Iterator[_Pair]:
    """The lines that occur once on each side, in the order of the first."""
    size = 1 + max(max(before, default=0), max(after, default=0))
    places, other_places = _only_places(before, size), _only_places(after, size)
    return ((a, b) for a, line in enumerate(before) if places[line] == a and (b := other_places[line]) >= 0)


def _only_places(lines: _Lines, size: int) -> "array[int]":
    """The place of each line that occurs once, by its number; negative for the others."""
    places = array("q", (_ABSENT,)) * size
    for place, line in enumerate(lines):
        places[line] = place if places[line] == _ABSENT else _REPEATED
    return places


def _unique_groups(before: _Lines, after: _Lines) -> Iterator[_Pair]:
    """The lines that, with the next few, occur once on each side; in the order of the first."""
    numbers: dict[int, int] = {}
    pairs = _unique(_grouped(before, numbers), _grouped(after, numbers))
    return ((a, b) for a, b in pairs if before[a] == after[b])  # equal hashes do not prove equal lines


def _grouped(lines: _Lines, numbers: dict[int, int]) -> _Lines:
    """The hash of each line and the next few, as a number."""
    count = max(0, len(lines) - _GROUP_LINES + 1)
    shifted = [lines[start : start + count] for start in range(_GROUP_LINES)]
    hashes = map(hash, zip(*shifted, strict=True))
    return array("q", (numbers.setdefault(each, len(numbers)) for each in hashes))


def _by_occurrence(before: _Lines, after: _Lines) -> Iterator[_Pair]:
    """The lines that both sides have, the first of one with the first of the other, and so on; in the order of the first."""
    size = 1 + max(max(before, default=0), max(after, default=0))
    places = {occurrence: b for b, occurrence in enumerate(_occurrences(after, size))}
    for a, occurrence in enumerate(_occurrences(before, size)):
        if (b := places.get(occurrence)) is not None:
            yield a, b


def _occurrences(lines: _Lines, size: int) -> Iterator[int]:
    """A number for each line and the count of equal lines before it."""
    seen = array("q", (0,)) * size
    for line in lines:
        yield seen[line] * size + line
        seen[line] += 1


def _longest_rise(pairs: Iterable[_Pair]) -> Iterator[_Pair]:
    """The longest subsequence that rises on both sides. The pairs rise on the first."""
    # Arrays, because a text may have a million lines.
    firsts, seconds, previous = array("q"), array("q"), array("q")
    smallest, holders = array("q"), array("q")
    """The smallest second place with which a rise of each length ends, and the index of its pair."""
    for index, (a, b) in enumerate(pairs):
        length = bisect_left(smallest, b)
        firsts.append(a)
        seconds.append(b)
        previous.append(holders[length - 1] if length else -1)
        smallest[length : length + 1] = array("q", (b,))
        holders[length : length + 1] = array("q", (index,))
    rise = array("q")
    at = holders[-1] if holders else -1
    while at >= 0:
        rise.append(at)
        at = previous[at]
    return ((firsts[index], seconds[index]) for index in reversed(rise))


_ANCHORINGS: tuple[_Anchoring, ...] = (_unique, _unique_groups, _by_occurrence)
"""Each for the parts that the one before leaves too long."""
