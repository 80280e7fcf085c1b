"""Search for many texts at once (Aho-Corasick): one step for each character, however many texts there are."""

from collections import deque
from collections.abc import Iterable


class LiteralSearch:
    """Finds which of some literals occur in a text."""

    def __init__(self, literals: Iterable[str]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._found: list[tuple[str, ...]] = [()]
        for literal in sorted(set(literals)):
            self._add(literal)
        self._fallback = [0] * len(self._next)
        self._link()

    def find(self, text: str) -> set[str]:
        """The literals that the text contains."""
        found: set[str] = set()
        state = 0
        for character in text:
            while (following := self._next[state].get(character)) is None and state:
                state = self._fallback[state]
            state = following or 0
            if self._found[state]:
                found.update(self._found[state])
        return found

    def _add(self, literal: str) -> None:
        state = 0
        for character in literal:
            following = self._next[state].get(character)
            if following is None:
                following = self._next[state][character] = len(self._next)
                self._next.append({})
                self._found.append(())
            state = following
        self._found[state] = (literal,)

    def _link(self) -> None:
        """From each state, where to continue if the next character does not fit: the longest end that begins a literal."""
        waiting = deque(self._next[0].values())
        while waiting:
            state = waiting.popleft()
            for character, following in self._next[state].items():
                back = self._fallback[state]
                while back and character not in self._next[back]:
                    back = self._fallback[back]
                self._fallback[following] = self._next[back].get(character, 0)
                self._found[following] += self._found[self._fallback[following]]
                waiting.append(following)
