"""Labels: the levels of values, and the parts that a value is made of."""

from typing import Literal, get_args

import msgspec

from holdfast.core.values import Value

Level = Literal["own", "known", "stranger"]
"""Who a value comes from. `own`: the person, or the host. `known`: someone or something that the policy names. `stranger`:
anyone could have written it.
"""
LEVELS: tuple[Level, ...] = get_args(Level)
"""Every level, highest first."""
_RANK: dict[Level, int] = {level: len(LEVELS) - number for number, level in enumerate(LEVELS)}


def lowest(*levels: Level) -> Level:
    """The lowest of some levels; `own` if there are none."""
    return min(levels, key=_RANK.__getitem__, default="own")


def reaches(level: Level, wanted: Level) -> bool:
    """Whether a level is at least another one."""
    return _RANK[level] >= _RANK[wanted]


class Origin(Value):
    """One thing that a value is made of."""

    kind: Literal["written", "read", "file", "session", "unknown"] = "unknown"
    """`written`: a literal of the program. `read`: the result of a call. `file`: a file that the program opened itself.
    `session`: anything that the session has read. `unknown`: the analysis cannot tell, so anyone could have written it."""
    operation: str = ""
    """Of the call whose result was read."""
    text: str = ""
    """The beginning of a literal."""
    path: tuple[str, ...] = ()
    """The fields that lead to the part of the result; `*` is any one field. Positions in lists are left out."""
    is_chosen: bool = False
    """It decided which value this is, or whether it is used, and is not itself in it."""
    is_whole: bool = False
    """The value is this very part of the result, so a field of the value is a field of the result."""
    place: int = -1
    """Where the call is in the program, in UTF-8 bytes; -1 for a call of an earlier run."""


Origins = frozenset[Origin]

UNKNOWN = Origin(kind="unknown")


_STANDING: dict[Level, str] = {"own": "yours", "known": "known", "stranger": "anyone could have written it"}


class CallLevels(Value):
    """The levels of one call: who wrote it, and who stands behind each argument."""

    author: Level = "own"
    """The lowest level of anything that the author of the program, or of the call, had been shown."""
    arguments: dict[str, Level] = msgspec.field(default_factory=dict)
    """The arguments below `own`, after what the person said and what the policy knows. In a question, those that a rule asks
    about come first, and then a stranger's."""
    sources: dict[str, str] = msgspec.field(default_factory=dict)
    """In words: where each argument below `own` came from."""
    carries_secret: bool = False
    """Whether something that the policy calls secret is in an argument."""

    def level_of(self, argument: str) -> Level:
        """The level of an argument."""
        return self.arguments.get(argument, "own")

    def source_of(self, argument: str) -> str:
        """In words: where an argument came from."""
        return self.sources.get(argument) or "unknown"

    def standing_of(self, argument: str) -> str:
        """In words: who stands behind an argument."""
        return _STANDING[self.level_of(argument)]


class CallOrigins(Value):
    """What is known about a call before it is judged: its author, and what each argument is made of."""

    author: Level = "stranger"
    arguments: dict[str, Origins] = msgspec.field(default_factory=dict)

    def of(self, argument: str) -> Origins:
        """What an argument is made of; unknown if nothing is said about it."""
        return self.arguments.get(argument, frozenset({UNKNOWN}))
