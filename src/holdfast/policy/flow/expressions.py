"""The value of each expression of a program, as the set of what it may be made of."""

import ast
from collections.abc import Mapping

from holdfast.policy.flow.atoms import (
    ANY,
    FILE,
    KEYS,
    NOTHING,
    PART,
    PAST_FUNCTION,
    WHOLE,
    Atom,
    Bound,
    BuiltinFunction,
    Heap,
    Made,
    NamedGroup,
    Read,
    ToolName,
    Val,
    Written,
    choices,
    may_be_text,
    unknown,
)
from holdfast.policy.flow.call_arguments import CallArguments
from holdfast.policy.flow.call_rules import CallRules
from holdfast.policy.flow.effects import has_effects
from holdfast.policy.flow.functions import Functions
from holdfast.policy.flow.known_names import ALL_BUILTINS, FILE_NAMES, PURE_BUILTINS, PURE_MODULES
from holdfast.policy.flow.result import Signature
from holdfast.policy.flow.scopes import Comprehension, Scope
from holdfast.policy.flow.tool_calls import ToolCalls
from holdfast.policy.flow.variables import Variables

_MAX_LITERAL = 60


class Unfollowed(Exception):
    """The program has something that the analysis does not follow."""


class Expressions:
    """Evaluates expressions over the variables and the heap."""

    def __init__(self, *, heap: Heap, variables: Variables, tools: Mapping[str, Signature]) -> None:
        self._heap = heap
        self._variables = variables
        self._tools = tools
        self._groups = frozenset(name.partition(".")[0] for name in tools if "." in name)
        self._comprehensions: dict[int, Scope] = {}
        self.functions = Functions(heap, variables)
        self.tool_calls = ToolCalls(heap, variables, tools)
        self.rules = CallRules(heap, variables, self.functions, self.tool_calls)

    def value(self, node: ast.expr | None) -> Val:
        """The value of an expression."""
        self._heap.count(1)
        match node:
            case None:
                return NOTHING
            case ast.Constant(value=constant):
                if constant is None or isinstance(constant, bool):
                    return NOTHING
                is_text = not isinstance(constant, int | float)
                return frozenset({Written(str(constant)[:_MAX_LITERAL], is_text)})
            case ast.Name(id=name):
                return self.name(name)
            case ast.Call():
                return self._call(node)
            case ast.Attribute(value=base, attr=name):
                return self._attribute(node, self.value(base), name)
            case ast.Subscript(value=base, slice=key):
                return self._subscript(node, self.value(base), key)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                return self._sequence(node, elements)
            case ast.Dict(keys=keys, values=values):
                return self._dictionary(node, keys, values)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._comprehension(node)
            case ast.BinOp(left=left, right=right):
                return self.operation(node, self.value(left), self.value(right))
            case ast.BoolOp(values=values):
                found = self._operands(values[:1], values[1:])
                return found | self._heap.chosen(found)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                decided = self._heap.chosen(self.value(test))
                found = self._variables.under(decided, lambda: self.value(body) | self.value(orelse))
                return found | decided
            case ast.Compare(left=left, comparators=others):
                found = self._operands([left, others[0]], others[1:])
                decided = self._heap.chosen(found)
                self._heap.consume(found, decided | self._variables.decided_by())  # `in` stops at the first
                return decided
            case ast.UnaryOp(op=operator, operand=operand):
                found = self.value(operand)
                if isinstance(operator, ast.Not):
                    return self._heap.chosen(found)
                has_container = any(isinstance(atom, Made | Bound) for atom in found)
                return self.operation(node, found, NOTHING) if has_container else self._heap.parts(found)
            case ast.JoinedStr(values=values):
                return self._heap.computed(NOTHING.union(*[self.value(each) for each in values]))
            case ast.FormattedValue(value=inner, format_spec=spec):
                return self._heap.computed(self.value(inner) | self.value(spec))
            case ast.NamedExpr(target=ast.Name(id=name), value=inner):
                found = self.value(inner)
                self._variables.assign(name, found, skips_comprehensions=True)
                return found
            case ast.Lambda(args=arguments):
                return frozenset({self.functions.define(node, self.default_values(arguments))})
            case ast.Slice(lower=lower, upper=upper, step=step):
                return self.value(lower) | self.value(upper) | self.value(step)
            case ast.Starred(value=inner):
                return self.value(inner)
            case _:
                raise Unfollowed(type(node).__name__)

    def _operands(self, always: list[ast.expr], later: list[ast.expr]) -> Val:
        """All operands. Each of the later ones is evaluated only if those before it decide so."""
        found = NOTHING.union(*[self.value(each) for each in always])
        for node in later:
            decided = self._heap.chosen(found)
            found |= self._variables.under(decided, lambda each=node: self.value(each))  # type: ignore[misc]
        return found

    def name(self, name: str) -> Val:
        """The value of a name: what the program assigns, or what is there by that name."""
        value, may_be_builtin = self._variables.get(name)
        if value is not None and PAST_FUNCTION in value:
            self.rules.calls_unknown = (
                True  # an object of an earlier program may call it, as `defaultdict` does
            )
        if not may_be_builtin and value is not None:
            return value
        found: set[Atom] = set()
        if name in self._tools:
            found.add(ToolName(name))
        if name in self._groups:
            found.add(NamedGroup(name, False))
        if name in PURE_BUILTINS:
            found.add(BuiltinFunction(name))
        elif name in FILE_NAMES:
            found |= self._file()
        elif name in ALL_BUILTINS and value is not None:
            found.add(PAST_FUNCTION)  # before the program assigns it, it is a built-in that is not followed
        if value is None and not found:
            return self._unknown()
        return frozenset(found) | (value or NOTHING)

    def is_predefined(self, name: str) -> bool:
        """Whether a name means something before the program assigns it."""
        return name in self._tools or name in self._groups or name in FILE_NAMES or name in ALL_BUILTINS

    def default_values(self, arguments: ast.arguments) -> dict[str, Val]:
        """The default of each parameter that has one."""
        for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self.value(each.annotation)
        plain = [*arguments.posonlyargs, *arguments.args]
        pairs = zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True)
        only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        return {parameter.arg: self.value(default) for parameter, default in (*pairs, *only)}

    def module_member(self, module: str, name: str) -> Val:
        """What `module.name` is."""
        if module in PURE_MODULES:
            return frozenset({BuiltinFunction(f"{module}.{name}")})
        if (module, name) == ("os", "chdir"):  # `getcwd` gives back what it is given
            return self._unknown()
        return self._file() if module.partition(".")[0] in FILE_NAMES else self._unknown()

    def element(self, value: Val, position: int) -> Val:
        """What unpacking gives at a position; a dictionary, too, can be unpacked, into its keys."""
        value = self._heap.opened(value)
        dictionaries = frozenset(
            atom for atom in value if isinstance(atom, Made) and atom.is_dict is not False
        )
        return self._heap.at(value - dictionaries, position) | self._heap.items(dictionaries)

    def operation(self, node: ast.AST, left: Val, right: Val) -> Val:
        """The result of an operator."""
        both = self._heap.opened(left | right)
        if not may_be_text(both):
            return both
        containers = [atom for atom in both if isinstance(atom, Made)]
        lists = frozenset(atom for atom in both if isinstance(atom, Read) and atom.how == WHOLE)
        if not containers:
            # Two results that are lists can be joined, and their records stay records.
            return self._heap.computed(both) | lists
        kinds = {atom.is_dict for atom in containers}
        made = Made(id(node), kinds.pop() if len(kinds) == 1 else None)
        self.rules.update(made, frozenset(atom for atom in both if isinstance(atom, Made | Read)))
        return self._heap.computed(both) | {made}

    def store(self, holders: Val, key: ast.expr, value: Val) -> None:
        """`holder[key] = value`."""
        keys, holders = self.value(key), self._heap.opened(holders)
        decided = self._heap.chosen(keys) | choices(holders) | self._variables.decided_by()
        value = value | decided
        for atom in holders:
            match key:
                case ast.Slice():
                    self._heap.add(atom, ANY, self._heap.items(value) | self._heap.chosen(value))
                    self._heap.forget_places(atom)
                case ast.Constant(value=str(name)) if isinstance(atom, Made) and atom.is_dict:
                    self._heap.add(atom, name, value)
                case _:
                    self._heap.add(atom, ANY, value)
            if isinstance(atom, Made) and atom.is_dict is not False:
                self._heap.add(atom, KEYS, keys | decided)

    def _unknown(self) -> Val:
        """A value that anyone could have written; an exception may carry it."""
        self.tool_calls.note_read(unknown())
        return unknown()

    def _file(self) -> Val:
        self.tool_calls.note_read(frozenset({Read(FILE, (), PART)}))
        return frozenset({Read(FILE, (), PART)})

    def _attribute(self, node: ast.expr, base: Val, name: str) -> Val:
        if name.startswith("__"):
            raise Unfollowed(name)
        found: set[Atom] = set()
        data: set[Atom] = set()
        for atom in base:
            match atom:
                case NamedGroup(name=group, is_module=False):
                    known = f"{group}.{name}" in self._tools
                    found |= {ToolName(f"{group}.{name}")} if known else self._unknown()
                case NamedGroup(name=group, is_module=True):
                    found |= self.module_member(group, name)
                case BuiltinFunction(name=owner):
                    found.add(BuiltinFunction(f"{owner}.{name}"))
                case _:
                    data.add(atom)
        if data:
            bound = Bound(id(node), name)
            opened = self._heap.opened(frozenset(data))
            objects = [atom for atom in opened if isinstance(atom, Made) and atom.is_dict is None]
            held = NOTHING.union(*(self._heap.contents(atom) for atom in objects))
            self._heap.add(bound, ANY, held | opened)
            found.add(bound)
        return frozenset(found)

    def _subscript(self, node: ast.expr, base: Val, key: ast.expr) -> Val:
        match key:
            case ast.Constant(value=str(name)):
                return self._heap.at(base, name)
            case ast.Constant(value=int(position)) if position >= 0 and not isinstance(position, bool):
                return self._heap.at(base, position)
            case ast.Slice():
                return self._slice(node, base) | self._heap.chosen(self.value(key))
            case _:
                keys = self.value(key)
                found = self._heap.at_any(base, is_text=may_be_text(keys)) | self._heap.chosen(keys)
                if any(isinstance(atom, Made) and atom.is_dict is None for atom in self._heap.opened(keys)):
                    found |= self._slice(node, base)
                if any(isinstance(atom, BuiltinFunction) for atom in base):
                    found |= self._heap.computed(keys)  # `list[key]` is a type, which shows its key
                return found

    def _slice(self, node: ast.expr, base: Val) -> Val:
        sliced, base = Made(id(node), False), self._heap.opened(base)
        data = frozenset(atom for atom in base if isinstance(atom, Written | Read))
        self._heap.add(sliced, ANY, NOTHING.union(*[self._heap.contents(atom) for atom in base - data]))
        return data | {sliced}

    def _sequence(self, node: ast.expr, elements: list[ast.expr]) -> Val:
        made = Made(id(node), False)
        has_places = not any(isinstance(each, ast.Starred) for each in elements)
        has_places = has_places and not isinstance(node, ast.Set)
        for position, each in enumerate(elements):
            value = self.value(each)
            if isinstance(each, ast.Starred):
                self._heap.consume(value, self._variables.decided_by())
            held = self._heap.items(value) if isinstance(each, ast.Starred) else value
            self._heap.add(made, position if has_places else ANY, held)
        return frozenset({made})

    def _dictionary(self, node: ast.expr, keys: list[ast.expr | None], values: list[ast.expr]) -> Val:
        made = Made(id(node), True)
        for key, each in zip(keys, values, strict=True):
            if key is None:
                self.rules.update(made, self.value(each))
                continue
            name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ANY
            self._heap.add(made, KEYS, self.value(key))
            self._heap.add(made, name, self.value(each))
        return frozenset({made})

    def _comprehension(self, node: Comprehension) -> Val:
        variables = self._variables
        outer, condition = variables.scope, variables.condition
        if id(node) not in self._comprehensions:
            targets = [child for each in node.generators for child in ast.walk(each.target)]
            names = {
                child.id
                for child in targets
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
            }
            self._comprehensions[id(node)] = Scope(id(node), outer, names, is_comprehension=True)
        variables.depth += 1
        if isinstance(node, ast.GeneratorExp) and has_effects(node):
            variables.condition |= self._heap.chosen(self.tool_calls.everything_read())
        for generator in node.generators:
            iterable = self.value(generator.iter)
            self._heap.consume(iterable, variables.decided_by())
            variables.scope = self._comprehensions[id(node)]
            self.bind(generator.target, self._heap.items(iterable))
            variables.condition |= self._heap.counted(iterable)
            for test in generator.ifs:
                variables.condition |= self._heap.chosen(self.value(test))
        made = Made(id(node), isinstance(node, ast.DictComp))
        if isinstance(node, ast.DictComp):
            self._heap.add(made, KEYS, self.value(node.key) | variables.decided_by())
            self._heap.add(made, ANY, self.value(node.value) | variables.decided_by())
        else:
            self._heap.add(made, ANY, self.value(node.elt) | variables.decided_by())
        if isinstance(node, ast.GeneratorExp):
            self._heap.add_iterator(made)
        variables.depth -= 1
        variables.scope, variables.condition = outer, condition
        return frozenset({made})

    def bind(self, target: ast.expr, value: Val) -> None:
        """Assign to a target of an assignment, a loop or a comprehension."""
        match target:
            case ast.Name(id=name):
                self._variables.assign(name, value)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self._heap.consume(value, self._variables.decided_by())
                has_places = not any(isinstance(each, ast.Starred) for each in elements)
                for position, each in enumerate(elements):
                    if isinstance(each, ast.Starred):
                        made = Made(id(each), False)
                        self._heap.add(made, ANY, self._heap.items(value))
                        self.bind(each.value, frozenset({made}))
                    else:
                        self.bind(
                            each, self.element(value, position) if has_places else self._heap.items(value)
                        )
            case ast.Subscript(value=base, slice=key):
                self.store(self.value(base), key, value)
            case _:  # an attribute, too: only instances of classes have them, and classes are not followed
                raise Unfollowed(type(target).__name__)

    def _call(self, node: ast.Call) -> Val:
        callee = self.value(node.func)
        given = CallArguments(node)
        match node.args:
            case [ast.Constant(value=str(text)), *_]:
                given.first_text = text
            case _:
                pass
        for argument in node.args:
            value = self.value(argument)
            if isinstance(argument, ast.Starred):
                self._heap.consume(value, self._variables.decided_by())
                given.rest |= self._heap.items(value)
                given.has_rest = True
            elif given.has_rest:
                given.rest |= value  # after `*args`, the position of a value is not known
            else:
                given.positional.append(value)
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is None:
                given.rest |= self._heap.at_any(value) | self.rules.keys(value)
                given.has_rest = True
            else:
                given.keywords[keyword.arg] = value
        return self.rules.call(callee, given, is_direct=True)
