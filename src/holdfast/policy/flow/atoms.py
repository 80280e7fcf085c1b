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
    """An attribute of a value: a method, or what an object holds."""

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
ANY, KEYS = -1, -2
"""Keys of the heap: elements at no known key, and the keys of a dictionary. INVARIANT: no program has a key like these."""
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


Holder = Atom | int
"""What can hold values: a container, or a result, by the number of its source."""
_ITERATORS = "<iterators>"
_NO_FIELDS: dict[Key, Val] = {}


class Progress:
    """What an analysis has used in this pass, and whether something that it used grew afterwards. If not, another pass finds the same.

    INVARIANT: whatever an analysis keeps between passes is only read after `use`, and tells `grew` when it grows.
    """

    def __init__(self) -> None:
        self.must_repeat = False
        self._used: set[object] = set()
        self.use = self._used.add
        self.use_all = self._used.update
        self._work = 0

    def start_pass(self) -> None:
        """Begin a pass: nothing is used yet."""
        self.must_repeat = False
        self._used.clear()

    def grew(self, what: object) -> None:
        """Something that is kept between passes grew."""
        if what in self._used:
            self.must_repeat = True

    def count(self, steps: int) -> None:
        """Count steps of the analysis. Raises TooMuchWork."""
        self._work += steps
        if self._work > MAX_WORK:
            raise TooMuchWork


class Heap:
    """What containers hold, and what was added to results. It only grows, until a pass changes nothing."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.count = self.progress.count
        self._contents: dict[Holder, dict[Key, Val]] = {}
        self._iterators: set[Atom] = set()
        self._reachable: dict[Val, tuple[Val, set[Holder]]] = {}
        """What is in values, and what holds it, until something grows."""
        self._parts: dict[Val, Val] = {}
        self._chosen: dict[Val, Val] = {}
        """By everything that is in a value: the data in it, and that data as choices."""

    def add(self, holder: Atom, key: Key, value: Val) -> None:
        """Let a holder hold a value at a key."""
        if not value or isinstance(holder, Written):
            return
        where: Holder = holder
        if isinstance(holder, Read):
            where, key = _overlay(holder), ANY
        fields = self._contents.setdefault(where, {})
        old = fields.get(key, NOTHING)
        if not value <= old:
            fields[key] = value if old <= value else old | value  # shared, so that it is searched once
            self._reachable.clear()
            self.progress.grew(where)

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
        if holder not in self._iterators:
            self._iterators.add(holder)
            self.progress.grew(_ITERATORS)

    def opened(self, value: Val) -> Val:
        """The value, with what the attributes in it may be."""
        waiting = [atom for atom in value if isinstance(atom, Bound)]
        if not waiting:
            return value
        found = set(value)
        for bound in waiting:  # it grows
            held = self.contents(bound) - found
            waiting += [atom for atom in held if isinstance(atom, Bound)]
            found |= held
        self.count(len(found))
        return frozenset(found)

    def consume(self, value: Val, decided: Val) -> None:
        """Elements are taken: what an iterator among the values still gives is decided by a value."""
        self.progress.use(_ITERATORS)
        if self._iterators:
            for holder in self._iterators & self.opened(value):
                self.add(holder, ANY, decided)

    def at(self, value: Val, key: Key) -> Val:
        """What is at a field or position that the program names."""
        self.count(len(value))
        found: set[Atom] = set()
        for atom in value:
            if isinstance(atom, Read):
                found |= self._added(atom)
                found.add(_field(atom, key) if isinstance(key, str) else atom)
            elif isinstance(atom, Written):
                found.add(atom)
            else:
                fields = self.fields(atom)
                found |= fields.get(key, NOTHING)
                found |= fields.get(ANY, NOTHING)
                if isinstance(atom, Bound):
                    found |= self.at(self._of_attribute(atom), key)
        return frozenset(found)

    def at_any(self, value: Val, *, is_text: bool = True) -> Val:
        """What is at a key that is not known; `is_text` if it may be the name of a field."""
        self.count(len(value))
        found: set[Atom] = set()
        for atom in value:
            if isinstance(atom, Read):
                found |= self._added(atom)
                found.add(atom)
                if is_text:
                    found.add(_field(atom, "*"))
            elif isinstance(atom, Written):
                found.add(atom)
            else:
                found |= self.contents(atom)
                if isinstance(atom, Bound):
                    found |= self.at_any(self._of_attribute(atom), is_text=is_text)
        return frozenset(found)

    def items(self, value: Val) -> Val:
        """What a loop over a value gives: elements of a list, keys of a dictionary."""
        keys: list[Val] = []
        others: list[Atom] = []
        for atom in self.opened(value):
            if isinstance(atom, Made) and atom.is_dict is not False:
                keys.append(self.keys(atom))
            if not isinstance(atom, Made) or not atom.is_dict:
                others.append(atom)
        return self.at_any(frozenset(others), is_text=False).union(*keys)

    def keys(self, holder: Atom) -> Val:
        """The keys of a dictionary of the program."""
        return self.fields(holder).get(KEYS, NOTHING)

    def contents(self, holder: Atom) -> Val:
        """Everything at any key of a container, without the keys."""
        fields = self.fields(holder)
        if len(fields) == 1 and ANY in fields:
            return fields[ANY]
        return NOTHING.union(*(held for key, held in fields.items() if key is not KEYS))

    def fields(self, holder: Holder) -> dict[Key, Val]:
        """What a container holds, by key."""
        self.progress.use(holder)
        return self._contents.get(holder, _NO_FIELDS)

    def reachable(self, value: Val) -> Val:
        """The value and everything in it, at any depth."""
        known = self._reachable.get(value)
        if known is not None:
            self.count(1)
            self.progress.use_all(known[1])
            return known[0]
        found: set[Atom] | None = None
        waiting: list[Atom] = list(value)
        used: set[Holder] = set()
        searched: set[int] = set()
        use, contents = used.add, self._contents
        for atom in waiting:  # it grows
            if isinstance(atom, Written):
                continue
            where: Holder = _overlay(atom) if isinstance(atom, Read) else atom
            use(where)
            fields = contents.get(where)
            if fields is not None:
                found = set(value) if found is None else found
                for held in fields.values():
                    if id(held) not in searched:
                        searched.add(id(held))
                        new = held - found
                        waiting += new
                        found |= new
        self.count(len(waiting))
        self.progress.use_all(used)
        result = value if found is None else frozenset(found)
        self._reachable[value] = result, used
        return result

    def computed(self, value: Val) -> Val:
        """What is computed from a value: nothing in it is the value itself any more."""
        return COMPUTED | self.parts(value)

    def parts(self, value: Val) -> Val:
        """The data that a value is made of."""
        if not value:
            return value
        reachable = self.reachable(value)
        found = self._parts.get(reachable)
        if found is None:
            found = self._parts[reachable] = frozenset(
                [
                    Read(atom.source, atom.path, PART)
                    if isinstance(atom, Read) and atom.how == WHOLE
                    else atom
                    for atom in reachable
                    if isinstance(atom, Written | Read)
                ]
            )
        return found

    def counted(self, value: Val) -> Val:
        """What decides how many elements a value has. A literal of the program has as many as are written."""
        found: set[Atom] = set()
        for atom in self.opened(value):
            if isinstance(atom, Made):
                fields = self.fields(atom)
                found |= fields.get(ANY, NOTHING)
                found |= fields.get(KEYS, NOTHING)
            elif isinstance(atom, Read):
                found.add(atom)
        return self.chosen(frozenset(found))

    def chosen(self, value: Val) -> Val:
        """What decides, where a value decides."""
        if not value:
            return value
        reachable = self.reachable(value)
        found = self._chosen.get(reachable)
        if found is None:
            found = self._chosen[reachable] = frozenset(
                [Read(atom.source, atom.path, CHOSEN) for atom in reachable if isinstance(atom, Read)]
            )
        return found

    def _of_attribute(self, bound: Bound) -> Val:
        """What an attribute may be, without other attributes."""
        return frozenset(atom for atom in self.opened(frozenset({bound})) if not isinstance(atom, Bound))

    def _added(self, atom: Read) -> Val:
        """What was added to a result."""
        return self.fields(_overlay(atom)).get(ANY, NOTHING)


def choices(value: Val) -> Val:
    """What decided which of several things a value is."""
    return frozenset(atom for atom in value if isinstance(atom, Read) and atom.how == CHOSEN)


def _field(atom: Read, name: str) -> Read:
    if atom.how != WHOLE:
        return atom
    is_deep = len(atom.path) >= MAX_PATH
    return Read(atom.source, atom.path, PART) if is_deep else Read(atom.source, (*atom.path, name), WHOLE)


def _overlay(atom: Read) -> int:
    """What was added to a result is seen through every part of it, and variables of earlier runs may share containers."""
    return atom.source if atom.source >= 0 else PAST
