"""The level of each argument of a call: what it is made of, and the four ways in which a value is endorsed.

E1, your words: it stands as a whole word in a message of the person. E2, known value: it equals a value in a field of that
level which the session has read. E3, named source: it is the only address of its kind in a result whose source the person
named; not for payees, because a bill can be replaced whole. E4, bounded number, is a test of a rule (`at_most`).
"""

import re
from collections.abc import Iterator

from holdfast.core import (
    CallId,
    CallLevels,
    CallOrigins,
    Json,
    JsonObject,
    Level,
    Origin,
    Role,
    Tool,
    lowest,
    reaches,
    scalars_in,
    texts_in,
)
from holdfast.gate.labels.session_origins import ReadResult, SessionOrigins
from holdfast.gate.labels.source_words import SourceWords
from holdfast.policy import LabelLevels, Policy, roles_of

MIN_WORD_LENGTH = 3
"""Of a text; a shorter one stands in every message. A number counts from its first digit."""
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]*\w")
"""It begins where a run of its characters begins: a search from every character of a long run would take quadratic time."""
_URL = re.compile(r"(?:https?://|www\.)[\w./%~?&=#:@-]*\w")
_WORD_START = r"(?<![\w@.:-])(?<![^/]/)(?<!^/)"
"""A host after `//` is a whole word, a name after a single `/` is a part of a path."""
_WORD_END = r"(?![\w@/-]|[.:]\w)"
_MAX_SCALARS = 2_000
_NO_CALLER = CallOrigins()


class ArgumentLevels:
    """Decides levels for one session."""

    def __init__(self, session: SessionOrigins) -> None:
        self._session = session
        self._words = SourceWords(session)
        self._levels: LabelLevels | None = None
        self._policy_digest = ""
        self._values: dict[Level, set[str]] = {"own": set(), "known": set()}
        self._counted = (0, 0)
        self._addresses: dict[tuple[str, str], list[ReadResult]] = {}
        """The results in which an address stands, by operation and address."""
        self._searched: dict[CallId, dict[re.Pattern[str], frozenset[str]]] = {}
        """The addresses in each result, by kind."""

    def rules(self, policy: Policy) -> LabelLevels | None:
        """What the policy says about levels; None if it does not ask."""
        if policy.digest != self._policy_digest:
            self._levels = LabelLevels(policy.labels) if policy.labels else None
            self._policy_digest = policy.digest
            self._values, self._counted = {"own": set(), "known": set()}, (0, 0)
        return self._levels

    def of_call(
        self,
        arguments: JsonObject,
        tool: Tool,
        origins: CallOrigins | None,
        levels: LabelLevels,
        *,
        with_sources: bool = False,
    ) -> CallLevels:
        """The levels of a call. Without origins, the caller is outside, and nothing is known about what it was shown.

        `with_sources` also says where each argument came from, which takes a search.
        """
        origins = origins or _NO_CALLER
        found: dict[str, Level] = {}
        sources: dict[str, str] = {}
        roles = roles_of(tool, arguments)
        for name, value in arguments.items():
            made_of = [one for one in origins.of(name) if levels.counts_choices or not one.is_chosen]
            level = lowest(*(self._level(one, origins.author, levels) for one in made_of))
            if level == "own":
                continue
            its_roles = roles.get(name, ())
            asked = levels.asked_of(its_roles)
            if asked is not None and not reaches(level, asked):
                level = self._endorsed(value, level, made_of, its_roles, levels, asked=asked)
            if level != "own":
                found[name] = level
            if level != "own" and with_sources:
                low = [one for one in made_of if self._level(one, origins.author, levels) != "own"]
                sources[name] = self._words.describe(value, low)
                if asked is not None and self._words.is_new(tool.name, name, value):
                    sources[name] += f"; never {'paid' if 'payee' in its_roles else 'used'} before"
        if with_sources:

            def importance(name: str) -> tuple[bool, bool]:
                return levels.asked_of(roles.get(name, ())) is None, found[name] != "stranger"

            found = {name: found[name] for name in sorted(found, key=importance)}
        return CallLevels(
            author=origins.author,
            arguments=found,
            sources=sources,
            carries_secret=any(
                one.kind == "read" and levels.is_secret(one.operation)
                for name in arguments
                for one in origins.of(name)
                if not one.is_chosen
            ),
        )

    def level_of_origins(self, origins: frozenset[Origin], author: Level, levels: LabelLevels) -> Level:
        """The lowest level of what something is made of."""
        counted = (one for one in origins if levels.counts_choices or not one.is_chosen)
        return lowest(*(self._level(one, author, levels) for one in counted))

    def _level(self, origin: Origin, author: Level, levels: LabelLevels) -> Level:
        match origin.kind:
            case "written":
                return author
            case "read":
                return self._session.level_of(origin.operation, origin.path, levels)
            case "file":
                return self._session.file_level(levels)
            case "session":
                return self._session.coarse_level(levels)
            case "unknown":
                return "stranger"

    def _endorsed(
        self,
        value: Json,
        level: Level,
        made_of: list[Origin],
        roles: tuple[Role, ...],
        levels: LabelLevels,
        *,
        asked: Level,
    ) -> Level:
        """The level of an argument after its values were looked up, as far as the rules ask: the lowest of them."""
        self._read_values(levels)
        found: Level = "own"
        for number, scalar in enumerate(scalars_in(value)):
            if number == _MAX_SCALARS:
                return level
            raised = self._scalar_level(scalar, made_of, roles, asked)
            found = lowest(found, raised if reaches(raised, level) else level)
            if found == level:
                return level
        return found

    def _scalar_level(
        self, scalar: str, made_of: list[Origin], roles: tuple[Role, ...], asked: Level
    ) -> Level:
        if not scalar or scalar in self._values["own"] or self._is_said(scalar):
            return "own"
        known: Level = "known" if scalar in self._values["known"] else "stranger"
        if reaches(known, asked) or "payee" in roles or not self._is_named(scalar, made_of):
            return known
        return "own"

    def _is_said(self, scalar: str) -> bool:
        """E1: whether the person wrote it."""
        text = scalar.lower()
        if len(text) < MIN_WORD_LENGTH and not text.isdigit():
            return False
        word: re.Pattern[str] | None = None
        for message in self._session.words:
            if text in message:
                word = word or re.compile(f"{_WORD_START}{re.escape(text)}{_WORD_END}")
                if word.search(message):
                    return True
        return False

    def _read_values(self, levels: LabelLevels) -> None:
        """E2: keep the values of fields that have a level."""
        session = self._session
        generation, count = self._counted
        if generation != session.generation:
            self._values, count = {"own": set(), "known": set()}, 0
            self._addresses.clear()
            self._searched.clear()
        new = session.read_count - count
        for each in session.results[-new:] if new else ():
            for path, value in _leaves(each.result, ()):
                level = self._session.level_of(each.operation, path, levels)
                if level != "stranger":
                    self._values[level].add(value)
        self._counted = session.generation, session.read_count

    def _is_named(self, scalar: str, made_of: list[Origin]) -> bool:
        """E3: whether it is the only address of its kind wherever it was read, and the person named each such place."""
        kind = next((each for each in (_EMAIL, _URL) if each.fullmatch(scalar)), None)
        if kind is None or any(one.kind == "unknown" for one in made_of):
            return False
        self._search_results()
        operations = {one.operation for one in made_of if one.kind == "read"}
        hits = [each for name in operations for each in self._addresses.get((name, scalar), ())]
        return bool(hits) and all(
            self._searched[each.call][kind] == {scalar}
            and any(self._is_said(given) for given in scalars_in(list(each.arguments.values())))
            for each in hits
        )

    def _search_results(self) -> None:
        """Look for addresses in the results that are new."""
        for each in reversed(self._session.results):
            if each.call in self._searched:
                return
            texts = list(texts_in(each.result))
            found = {
                kind: frozenset(address for text in texts for address in kind.findall(text))
                for kind in (_EMAIL, _URL)
            }
            self._searched[each.call] = found
            for address in found[_EMAIL] | found[_URL]:
                kept = each._replace(result=None)  # what is found is enough, and results can be large
                self._addresses.setdefault((each.operation, address), []).append(kept)


def _leaves(value: Json, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The texts and numbers of a result, each with the fields that lead to it; the keys of an object stand at its own path."""
    waiting: list[tuple[Json, tuple[str, ...]]] = [(value, path)]
    while waiting:
        one, at = waiting.pop()
        match one:
            case None | bool():
                pass
            case list(items):
                waiting += [(item, at) for item in items]
            case dict(members):
                waiting += [(member, (*at, name)) for name, member in members.items()]
                for name in members:
                    yield at, name
            case scalar:
                yield at, str(scalar)
