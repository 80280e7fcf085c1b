"""What a call gives, and what it changes: functions of the program, tools, built-in functions and methods.

A call without its own rule gives anything that it can reach, may store it in every container that it can reach, and may
call every function that it is given.
"""

from holdfast.policy.flow.atoms import (
    ANY,
    FILE,
    KEYS,
    NOTHING,
    PAST_FUNCTION,
    Bound,
    BuiltinFunction,
    Function,
    Heap,
    Key,
    Made,
    NamedGroup,
    Read,
    ToolName,
    Val,
    Written,
    choices,
    made_object,
    may_be_text,
    unknown,
)
from holdfast.policy.flow.call_arguments import CallArguments, arguments
from holdfast.policy.flow.effects import READING_METHODS
from holdfast.policy.flow.functions import Functions
from holdfast.policy.flow.known_names import (
    ALGEBRA,
    COMPUTING,
    COMPUTING_METHODS,
    COMPUTING_MODULES,
    COPIES,
    ERRORS,
    HIDDEN_STATE,
    LAZY,
    MAKES_CONTAINERS,
    MODULES_WITH_STATE,
    MOVERS,
    TEST_METHODS,
    TESTS,
)
from holdfast.policy.flow.tool_calls import ToolCalls
from holdfast.policy.flow.variables import Variables

_PASSED, _CALLED_BACK = "<passed>", "<called back>"


class CallRules:
    """The rules, by what is called."""

    def __init__(self, heap: Heap, variables: Variables, functions: Functions, tool_calls: ToolCalls) -> None:
        self._heap = heap
        self._variables = variables
        self._functions = functions
        self._tool_calls = tool_calls
        self._calling_back: set[int] = set()
        self.calls_unknown = False
        """Whether something is called that could change any variable, such as a function of an earlier run."""

    def call(self, callee: Val, given: CallArguments, *, is_direct: bool) -> Val:
        """What a call gives. It is direct if it is in the program itself, so that its place is known."""
        # Nothing that is known is called: what comes back can only be made of what was given.
        found = NOTHING if callee else self._heap.computed(given.everything())
        for atom in callee:
            match atom:
                case ToolName() if is_direct:
                    found |= self._tool_calls.call(atom, given)
                case ToolName():
                    found |= self._tool_calls.call_indirectly(atom, given)
                case Function() if atom == PAST_FUNCTION:
                    self.calls_unknown = True
                case Function(node=number):
                    found |= self._functions.call(number, given)
                case Bound(name=name):
                    found |= self._method(self._heap.opened(frozenset({atom})) - {atom}, name, given)
                case BuiltinFunction(name=name):
                    found |= self._builtin(name, given)
                case Read(source=source):
                    if source == FILE:
                        found |= self._heap.computed(given.everything()) | {atom}
                    else:
                        self.calls_unknown = True
                case NamedGroup():
                    found |= unknown()
                case Written() | Made():  # an object that a module made, such as `itemgetter(0)`
                    found |= self._generic(given, given.everything() | {atom})
        return found

    def update(self, made: Made, value: Val) -> None:
        """Add what another container holds."""
        decided = self._variables.decided_by() | self._heap.counted(value)
        if made.is_dict is False:
            self._heap.add(made, ANY, self._heap.items(value) | decided)
            return
        others = self._heap.opened(value)
        if made.is_dict:
            dictionaries = frozenset(atom for atom in others if isinstance(atom, Made) and atom.is_dict)
            for atom in dictionaries:
                for key, held in list(self._heap.fields(atom).items()):
                    self._heap.add(made, key, held | decided)
            others -= dictionaries
        if others:  # dictionaries that are results, and pairs
            pairs = self._heap.items(others)
            members = self._heap.at_any(pairs)
            self._heap.add(made, ANY, pairs | self._values(others) | members | decided)
            self._heap.add(made, KEYS, members | self._heap.parts(others) | decided)

    def _builtin(self, name: str, given: CallArguments) -> Val:
        everything = given.everything()
        first = given.positional[0] if given.positional else given.rest
        self._heap.consume(
            everything, self._decided_later() if name in LAZY else self._variables.decided_by()
        )
        if name in HIDDEN_STATE and any(isinstance(atom, Read) for atom in self._heap.parts(everything)):
            self.calls_unknown = True
        if name in TESTS:
            decided = self._heap.chosen(everything)
            self._heap.consume(everything, decided)  # `any` and `all` stop at the first
            return decided | {BuiltinFunction("type()")} if name == "type" else decided
        if name == "iter" and len(given.positional) > 1:
            return self._generic(given, everything)  # it calls a function again and again
        if name in COPIES:
            held = self._heap.items(first | given.rest) | self._heap.counted(first)
            held |= self._key_choice(first, given)
            return self._iterator(given, held) if name in LAZY else self._list(given, held)
        if name in COMPUTING:
            return self._heap.computed(everything)
        if name in ERRORS:
            return self._object(given, everything)
        match name:
            case "print":
                self._tool_calls.show(everything)
                return NOTHING
            case "range":
                return self._list(given, self._heap.parts(everything))
            case "next":
                return self._heap.items(first).union(*given.positional[1:], given.rest)
            case "max" | "min":
                given_one = len(given.positional) == 1 and not given.has_rest
                found = self._heap.items(first) if given_one else everything
                if given.has_rest:  # it may be one argument after all
                    found |= self._heap.items(everything)
                found |= given.keywords.get("default", NOTHING)
                return found | self._heap.chosen(found) | self._key_choice(everything, given)
            case "sum":
                summed = self._heap.items(everything)
                return everything | self._object(given, summed | self._heap.items(summed))
            case "dict":
                made = Made(id(given.node), True)
                for value in (*given.positional, given.rest):
                    self.update(made, value)
                for keyword, value in given.keywords.items():
                    self._heap.add(made, keyword, value)
                    self._heap.add(made, KEYS, frozenset({Written(keyword, True)}))
                if given.has_rest:
                    self._heap.add(made, ANY, given.rest)
                    self._heap.add(made, KEYS, self._heap.computed(given.rest))
                return frozenset({made})
            case "enumerate":
                number = self._heap.counted(everything)
                start = given.rest.union(*given.positional[1:], *given.keywords.values())
                number |= self._heap.parts(start)
                return self._iterator(given, self._pair(given, number, self._heap.items(everything)))
            case "zip":
                number = self._heap.counted(everything)  # the shortest decides for all
                items = [self._heap.items(value) | number for value in given.positional]
                return self._iterator(given, self._pair(given, *items, rest=self._heap.items(given.rest)))
            case "map" | "filter" if not given.has_rest and given.positional:
                items = [self._heap.items(value) for value in given.positional[1:]]
                called = arguments(given.node, *items)
                decided = self._decided_later() if self._has_effects(first) else NOTHING
                result = self._variables.under(decided, lambda: self.call(first, called, is_direct=False))
                if name == "filter":
                    result = NOTHING.union(*items) | self._heap.chosen(result)
                return self._iterator(given, result | self._heap.counted(everything))
            case _ if name.partition(".")[0] in COMPUTING_MODULES:
                return self._object(
                    given, everything | self._callbacks(given, everything) | self._hidden(name)
                )
            case _:
                return self._generic(given, everything | self._hidden(name))

    def _hidden(self, name: str) -> Val:
        """What a module may have kept from an earlier program that could not be followed."""
        has_state = name.partition(".")[0] in MODULES_WITH_STATE
        return unknown() if has_state and self._variables.follows_unknown else NOTHING

    def _method(self, base: Val, name: str, given: CallArguments) -> Val:
        everything = given.everything()
        self._heap.consume(everything, self._variables.decided_by())
        if name in TEST_METHODS:
            start = given.rest.union(*given.positional[1:])
            return self._heap.chosen(base | everything) | self._heap.parts(start)
        if name in MAKES_CONTAINERS:
            return self._object(given, base | everything)
        if name in COMPUTING_METHODS:
            return self._heap.computed(base | everything)
        holders = [atom for atom in base if isinstance(atom, Made | Read)]
        decided = choices(base) | self._variables.decided_by()
        match name:
            case "append" | "add" | "appendleft":
                for atom in holders:
                    self._heap.add(atom, ANY, everything | decided)
                    self._heap.forget_places(atom)
                return NOTHING
            case "extend" | "insert":
                added = self._heap.items(everything) | self._heap.counted(everything) | decided
                for atom in holders:
                    self._heap.add(atom, ANY, added if name == "extend" else everything | decided)
                    self._heap.forget_places(atom)
                return NOTHING
            case "update":
                for atom in holders:
                    self._update_method(atom, given, decided)
                return NOTHING
            case "get" | "setdefault" | "pop":
                return self._lookup(base, name, given)
            case "items":
                keys, values = self.keys(base), self._values(base)
                return self._list(given, self._pair(given, keys, values))
            case "keys":
                return self._list(given, self.keys(base))
            case "values":
                return self._list(given, self._values(base))
            case "popitem":
                for atom in holders:
                    self._heap.change(atom, decided)
                return self._pair(given, self.keys(base), self._values(base))
            case "copy":
                return base
            case _ if name in MOVERS:
                moved = self._key_choice(base, given) | self._heap.chosen(everything) | decided
                for atom in holders:
                    self._heap.change(atom, moved)
                return NOTHING
            case _ if name in ALGEBRA:
                return self._list(given, self._heap.items(base | everything))
            case _:
                return self._generic(given, base | everything)

    def _lookup(self, base: Val, name: str, given: CallArguments) -> Val:
        keys, others = (given.positional[0], given.positional[1:]) if given.positional else (NOTHING, [])
        default = given.rest.union(*others, *given.keywords.values())
        text = given.first_text
        key: Key = ANY if text is None else text
        decided = self._heap.chosen(keys | given.rest) | choices(base) | self._variables.decided_by()
        if name == "setdefault":
            for atom in base:
                if isinstance(atom, Made | Read):
                    self._heap.add(atom, key, default | decided)
                if isinstance(atom, Made) and atom.is_dict is not False:
                    self._heap.add(atom, KEYS, keys | given.rest | decided)
        elif name == "pop":
            for atom in base:
                self._heap.change(atom, decided)
        is_text = may_be_text(keys) or given.has_rest
        found = self._heap.at(base, text) if text is not None else self._heap.at_any(base, is_text=is_text)
        return found | default | self._heap.chosen(keys | given.rest)

    def _update_method(self, holder: Made | Read, given: CallArguments, decided: Val) -> None:
        if isinstance(holder, Read):
            self._heap.add(holder, ANY, self._heap.reachable(given.everything()) | decided)
            return
        self._heap.add(holder, ANY, decided)
        self._heap.add(holder, KEYS, decided)
        for value in (*given.positional, given.rest):
            self.update(holder, value)
        for keyword, value in given.keywords.items():
            self._heap.add(holder, keyword, value | decided)
            self._heap.add(holder, KEYS, frozenset({Written(keyword, True)}))
        if given.has_rest:
            self._heap.add(holder, ANY, given.rest | decided)
            self._heap.add(holder, KEYS, self._heap.computed(given.rest))

    def _object(self, given: CallArguments, value: Val) -> Val:
        """What is computed from a value, as an object that the program can change, and that may still hold the value."""
        found = self._heap.computed(value) | {made_object(given.node)}
        for atom in found:
            if isinstance(atom, Made):
                self._heap.add(atom, ANY, found | value)
                self._heap.add(atom, KEYS, found)
        return found

    def _generic(self, given: CallArguments, value: Val) -> Val:
        """A call without its own rule."""
        made = made_object(given.node)
        found = (
            self._callbacks(given, value)
            | self._heap.reachable(value)
            | self._heap.computed(value)
            | self._variables.decided_by()
            | {made}
        )
        # A tool inside the result, as in `partial`, is not called with what the program shows.
        if any(isinstance(atom, ToolName) for atom in found):
            found = frozenset(atom for atom in found if not isinstance(atom, ToolName)) | {PAST_FUNCTION}
        for atom in found:
            if isinstance(atom, Made | Read):
                self._heap.add(atom, ANY, found)
            if isinstance(atom, Made) and atom.is_dict is not False:
                self._heap.add(atom, KEYS, found)
        return found

    def _callbacks(self, given: CallArguments, value: Val) -> Val:
        """What the functions among some arguments give, if they are called with any of the others."""
        reachable = self._heap.reachable(value)
        if not _callables(reachable):
            return NOTHING
        number = id(given.node)
        self._variables.grow(number, _PASSED, reachable | self._heap.computed(value))
        # A function that is given itself: the next pass knows what it gives.
        if number not in self._calling_back:
            self._calling_back.add(number)
            passed = CallArguments(given.node)
            passed.rest = self._variables.cell(number, _PASSED)
            passed.positional, passed.has_rest = [passed.rest] * 3, True
            called = self.call(_callables(passed.rest), passed, is_direct=False)
            self._variables.grow(number, _CALLED_BACK, called)
            self._calling_back.remove(number)
        return self._variables.cell(number, _CALLED_BACK)

    def _has_effects(self, callee: Val) -> bool:
        """Whether a call may change anything but its result."""
        for atom in callee:
            match atom:
                case Function(node=number) if atom != PAST_FUNCTION and not self._functions.has_effects(
                    number
                ):
                    pass
                case Bound(name=name) if name in READING_METHODS:
                    pass
                case BuiltinFunction() | Written() | Made() | Read():
                    pass
                case _:
                    return True
        return False

    def _decided_later(self) -> Val:
        """What decides when a lazy function runs, and how often: anything that is read."""
        return self._heap.chosen(self._tool_calls.everything_read())

    def _key_choice(self, value: Val, given: CallArguments) -> Val:
        """What the function given as `key` decides."""
        keys = given.keywords.get("key", NOTHING) | _callables(given.rest)
        if not keys:
            return NOTHING
        one = arguments(given.node, self._heap.items(value) | value)
        return self._heap.chosen(self.call(keys, one, is_direct=False))

    def keys(self, base: Val) -> Val:
        """The keys of a dictionary."""
        found = NOTHING
        for atom in base:
            is_made = isinstance(atom, Made)
            found |= self._heap.items(frozenset({atom})) if is_made else self._heap.parts(frozenset({atom}))
        return found

    def _values(self, base: Val) -> Val:
        found = NOTHING
        for atom in base:
            if isinstance(atom, Read):
                found |= self._heap.at(frozenset({atom}), "*")
            elif isinstance(atom, Made):
                found |= self._heap.contents(atom)
            else:
                found |= frozenset({atom})
        return found

    def _list(self, given: CallArguments, held: Val) -> Val:
        made = Made(id(given.node), False)
        self._heap.add(made, ANY, held | self._variables.decided_by())
        return frozenset({made})

    def _iterator(self, given: CallArguments, held: Val) -> Val:
        made = self._list(given, held)
        for atom in made:
            self._heap.add_iterator(atom)
        return made

    def _pair(self, given: CallArguments, *held: Val, rest: Val = NOTHING) -> Val:
        # No other node has this number: the ids of objects are even.
        made = Made(id(given.node) + 1, False)
        for position, value in enumerate(held):
            self._heap.add(made, position, value)
        self._heap.add(made, ANY, rest)
        return frozenset({made})


def _callables(value: Val) -> Val:
    return frozenset(
        atom for atom in value if isinstance(atom, Function | Bound | BuiltinFunction | ToolName)
    )
