"""Abstract values of the analysis: a value is the set of the atoms that it may be, be computed from, or be chosen by.

A container that the program makes is a separate atom (`Made`), one for each place where it is made; what it holds is in the
heap. A change of a container is therefore seen through every name it has.
"""

from typing import NamedTuple

MAX_PATH = 4
"""Fields that are followed into a result; a deeper part has the level of the part above it."""

WHOLE, PART, CHOSEN = 0, 1, 2
"""How a result is in a value: as itself, as something computed from it, or only as what decided about it."""

PAST, FILE, UNKNOWN_SOURCE = -1, -2, -3
"""Sources that are not a call of this program: variables of earlier runs (this number and below -9), files, anything."""


class Written(NamedTuple):
    """A literal of the program."""

    text: str
    is_text: bool
    tag: str = "written"


class Read(NamedTuple):
    """A part of what a source gave."""

    source: int
    path: tuple[str, ...]
    how: int
    tag: str = "read"


class Made(NamedTuple):
    """A container that the program makes at a node. `is_dict` is None if it may be of any kind."""

    node: int
    is_dict: bool | None
    tag: str = "made"


class Function(NamedTuple):
    """A function of the program; -1 is one of an earlier run."""

    node: int
    tag: str = "function"


class Bound(NamedTuple):
    """A method taken as a value."""

    node: int
    name: str
    tag: str = "bound"


class BuiltinFunction(NamedTuple):
    """A built-in function, or a function of a module, by its dotted name."""

    name: str
    tag: str = "builtin"


class NamedGroup(NamedTuple):
    """A group of tools, or a module."""

    name: str
    is_module: bool
    tag: str = "group"


class ToolName(NamedTuple):
    """A tool, by the name that the program calls it."""

    name: str
    tag: str = "tool"


Atom = Written | Read | Made | Function | Bound | BuiltinFunction | NamedGroup | ToolName
Val = frozenset[Atom]
Key = str | int
NOTHING: Val = frozenset()
TEXT = Written("", True)
"""Text that the program computes. INVARIANT: a value that can be a text has an atom that is neither a number nor a choice."""
COMPUTED: Val = frozenset({TEXT})
ANY, KEYS = "*any", "*keys"
"""Keys of the heap: elements at no known key, and the keys of a dictionary."""
PAST_FUNCTION = Function(-1)
PAST_CONTAINER = Made(-1, None)
"""Any container of an earlier run: several variables may hold the same one."""


def made_object(node: object) -> Made:
    """What a call makes that is not followed further: an object of any kind."""
    return Made(id(node), None)


def unknown(how: int = PART) -> Val:
    """A value that anyone could have written."""
    return frozenset({Read(UNKNOWN_SOURCE, (), how)})


def may_be_text(value: Val) -> bool:
    """Whether a value used as a key may be a text, and not only a number."""
    return any(
        atom.is_text if isinstance(atom, Written) else not (isinstance(atom, Read) and atom.how == CHOSEN)
        for atom in value
    )


MAX_WORK = 60_000
"""Steps of an analysis: some 50 milliseconds."""


class TooMuchWork(Exception):
    """The program takes more steps to analyse than are worth it."""


class Heap:
    """What containers hold, and what was added to results. It only grows, until a pass changes nothing."""

    def __init__(self) -> None:
        self._contents: dict[Atom | int, dict[Key, Val]] = {}
        self._iterators: set[Atom] = set()
        self.has_changed = False
        self._work = 0

    def count(self, steps: int) -> None:
        """Count steps of the analysis. Raises TooMuchWork."""
        self._work += steps
        if self._work > MAX_WORK:
            raise TooMuchWork

    def add(self, holder: Atom, key: Key, value: Val) -> None:
        """Let a holder hold a value at a key."""
        if isinstance(holder, Written) or not value:
            return
        where: Atom | int = _overlay(holder) if isinstance(holder, Read) else holder
        fields = self._contents.setdefault(where, {})
        old = fields.get(ANY if isinstance(holder, Read) else key, NOTHING)
        if not value <= old:
            fields[ANY if isinstance(holder, Read) else key] = old | value
            self.has_changed = True

    def forget_places(self, holder: Atom) -> None:
        """Elements of a list may have moved: whatever it holds may be at any position."""
        if isinstance(holder, Made) and not holder.is_dict:
            self.add(holder, ANY, self.contents(holder))

    def change(self, holder: Atom, decided: Val) -> None:
        """A holder loses or moves elements: what it still holds, and how much, is decided by a value."""
        self.add(holder, ANY, decided)
        if isinstance(holder, Made) and holder.is_dict is not False:
            self.add(holder, KEYS, decided)
        self.forget_places(holder)

    def add_iterator(self, holder: Atom) -> None:
        """A holder gives each element only once."""
        self._iterators.add(holder)

    def consume(self, value: Val, decided: Val) -> None:
        """Elements are taken: what an iterator among the values still gives is decided by a value."""
        for holder in self._iterators & value:
            self.add(holder, ANY, decided)

    def at(self, value: Val, key: Key) -> Val:
        """What is at a field or position that the program names."""
        self.count(len(value))
        found: set[Atom] = set()
        for atom in value:
            if isinstance(atom, Read):
                found |= self._contents.get(_overlay(atom), {}).get(ANY, NOTHING)
                found.add(_field(atom, key) if isinstance(key, str) else atom)
            elif isinstance(atom, Written):
                found.add(atom)
            else:
                fields = self._contents.get(atom, {})
                found |= fields.get(key, NOTHING) | fields.get(ANY, NOTHING)
        return frozenset(found)

    def at_any(self, value: Val, *, is_text: bool = True) -> Val:
        """What is at a key that is not known; `is_text` if it may be the name of a field."""
        self.count(len(value))
        found: set[Atom] = set()
        for atom in value:
            if isinstance(atom, Read):
                found |= self._contents.get(_overlay(atom), {}).get(ANY, NOTHING)
                found.add(atom)
                if is_text:
                    found.add(_field(atom, "*"))
            elif isinstance(atom, Written):
                found.add(atom)
            else:
                found |= self.contents(atom)
        return frozenset(found)

    def items(self, value: Val) -> Val:
        """What a loop over a value gives: elements of a list, keys of a dictionary."""
        found: set[Atom] = set()
        for atom in value:
            if isinstance(atom, Made) and atom.is_dict is not False:
                found |= self.keys(atom)
            if not isinstance(atom, Made) or not atom.is_dict:
                found |= self.at_any(frozenset({atom}), is_text=False)
        return frozenset(found)

    def keys(self, holder: Atom) -> Val:
        """The keys of a dictionary of the program."""
        return self._contents.get(holder, {}).get(KEYS, NOTHING)

    def contents(self, holder: Atom) -> Val:
        """Everything at any key of a container, without the keys."""
        return NOTHING.union(
            *(held for key, held in self._contents.get(holder, {}).items() if key is not KEYS)
        )

    def fields(self, holder: Atom) -> dict[Key, Val]:
        """What a container holds, by key."""
        return self._contents.get(holder, {})

    def reachable(self, value: Val) -> Val:
        """The value and everything in it, at any depth."""
        found: set[Atom] = set()
        waiting = list(value)
        while waiting:
            atom = waiting.pop()
            if atom in found:
                continue
            found.add(atom)
            where: Atom | int = _overlay(atom) if isinstance(atom, Read) else atom
            for held in self._contents.get(where, {}).values():
                waiting += held
        self.count(len(found))
        return frozenset(found)

    def computed(self, value: Val) -> Val:
        """What is computed from a value: nothing in it is the value itself any more."""
        return COMPUTED | self.parts(value)

    def parts(self, value: Val) -> Val:
        """The data that a value is made of."""
        return frozenset(
            atom._replace(how=PART) if isinstance(atom, Read) and atom.how == WHOLE else atom
            for atom in self.reachable(value)
            if isinstance(atom, Written | Read)
        )

    def counted(self, value: Val) -> Val:
        """What decides how many elements a value has. A literal of the program has as many as are written."""
        found: set[Atom] = set()
        for atom in value:
            if isinstance(atom, Made):
                fields = self._contents.get(atom, {})
                found |= fields.get(ANY, NOTHING) | fields.get(KEYS, NOTHING)
            elif isinstance(atom, Read):
                found.add(atom)
        return self.chosen(frozenset(found))

    def chosen(self, value: Val) -> Val:
        """What decides, where a value decides."""
        return frozenset(
            atom._replace(how=CHOSEN) for atom in self.reachable(value) if isinstance(atom, Read)
        )


def choices(value: Val) -> Val:
    """What decided which of several things a value is."""
    return frozenset(atom for atom in value if isinstance(atom, Read) and atom.how == CHOSEN)


def _field(atom: Read, name: str) -> Read:
    if atom.how != WHOLE:
        return atom
    return atom._replace(path=(*atom.path, name)) if len(atom.path) < MAX_PATH else atom._replace(how=PART)


def _overlay(atom: Read) -> int:
    """What was added to a result is seen through every part of it, and variables of earlier runs may share containers."""
    return atom.source if atom.source >= 0 else PAST
