"""Random programs that move values around, run by CPython with values that show where they came from.

Every field of a result is made of one character of its own, which survives slicing, joining, sorting and every other text
operation. A character in an argument of `pay` therefore shows that this field flowed there.
"""

import inspect
import random
import sys
import warnings
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from holdfast.policy.flow.result import Signature

TOOLS = {
    "read": Signature(operation="read", parameters={"p": "p"}),
    "box.list": Signature(operation="box.list", parameters={"q": "q"}),
    "pay": Signature(operation="pay", parameters={"to": "to", "note": "note"}),
}
_FIRST_MARK = 0xE000
FIELDS = (("a",), ("b", "a"), ("b", "c"), ("l",), ("k", "x", "a"))
MODULES = ("collections", "copy", "functools", "itertools", "json", "re")
MARKS = {
    chr(_FIRST_MARK + number): mark
    for number, mark in enumerate((operation, path) for operation in ("read", "box.list") for path in FIELDS)
}


class Payment(NamedTuple):
    """A call of `pay` that a program made: where it stands, and what each argument had in it."""

    place: tuple[int, int]
    argument: str
    marks: frozenset[str]


def result(operation: str) -> list[dict[str, Any]]:
    """What a tool returns: two records, each text made of the mark of its field."""
    mark = {path: char * 4 for char, (name, path) in MARKS.items() if name == operation}
    record: dict[str, Any] = {
        "a": mark["a",],
        "b": {"a": mark["b", "a"], "c": mark["b", "c"]},
        "l": [mark["l",], mark["l",]],
        "k": {"x": {"a": mark["k", "x", "a"]}},
    }
    return [record, {**record, "b": dict(record["b"]), "l": list(record["l"])}]


def marks_in(value: object) -> frozenset[str]:
    """The marks in a value, at any depth."""
    found: set[str] = set()
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            found.update(char for char in one if char in MARKS)
        elif isinstance(one, dict | list | tuple | set | frozenset) and id(one) not in seen:
            seen.add(id(one))
            waiting += [*one, *one.values()] if isinstance(one, dict) else one
    return frozenset(found)


def compiled_program(code: str) -> CodeType | None:
    """A program, or a piece of one, as CPython runs it. None if it is not Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return compile(code, "<program>", "exec")
        except SyntaxError:
            return None


class Machine:
    """Runs programs one after another, with the same variables."""

    def __init__(self) -> None:
        self.payments: list[Payment] = []
        self.shown: set[str] = set()
        self._steps = 0
        self._lines: list[bytes] = []
        box = type("box", (), {"list": staticmethod(lambda q="": result("box.list"))})
        self.variables: dict[str, Any] = {
            "read": lambda p="": result("read"), "box": box, "pay": self._pay, "print": self._print,
        }  # fmt: skip

    def run(self, code: str) -> bool:
        """Run a program to its end, to an exception, or for a number of lines. Returns whether it came to its end."""
        compiled = compiled_program(code)
        self._lines = code.encode().split(b"\n")
        self.start()
        return compiled is not None and self.go_on(compiled)

    def start(self) -> None:
        """Begin a program: its lines are counted."""
        self._steps = 0

    def go_on(self, compiled: CodeType) -> bool:
        """Run a piece of the program, after the pieces before it."""
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            exec(compiled, self.variables)
        except Exception:
            return False
        finally:
            sys.settrace(before)
        return True

    def _trace(self, frame: Any, event: str, _argument: object) -> Callable[..., Any] | None:
        # A generator that is thrown away must not raise: nobody could catch it.
        if frame.f_code.co_filename != "<program>" or frame.f_code.co_flags & inspect.CO_GENERATOR:
            return None
        self._steps += 1
        if self._steps > 400 or (self._steps % 8 == 0 and self._has_large_value()):
            raise TimeoutError("the program takes too long, or too much")
        return self._trace

    def _has_large_value(self) -> bool:
        kinds = (str, list, dict)
        return any(isinstance(each, kinds) and len(each) > 3_000 for each in self.variables.values())

    def _pay(self, to: object = None, note: object = None) -> dict[str, str]:
        frame = sys._getframe(1)
        if frame.f_code.co_filename == "<program>":
            line, end_line, start, end = list(frame.f_code.co_positions())[frame.f_lasti // 2]
            place = self._offset(line or 0) + (start or 0), self._offset(end_line or 0) + (end or 0)
            for argument, value in (("to", to), ("note", note)):
                self.payments.append(Payment(place, argument, marks_in(value)))
        return {"id": "paid"}

    def _offset(self, line: int) -> int:
        return sum(len(each) + 1 for each in self._lines[: line - 1])

    def _print(self, *values: object, **_: object) -> None:
        self.shown |= marks_in(list(values))


class _Trial:
    """A program that is run while it is written, each statement once as long as none raises."""

    def __init__(self, earlier: Sequence[str]) -> None:
        self.kept: list[str] = []
        self._earlier = [each for code in earlier if (each := compiled_program(code)) is not None]
        self._compiled: list[CodeType] = []
        self._machine = self._started()
        self._is_ended = False

    def add(self, statement: str, *, may_raise: bool) -> bool:
        """Keep a statement that does not raise, or that may. Returns whether it came to its end."""
        compiled = compiled_program(statement)
        if compiled is None:
            return False
        is_run = not self._is_ended and self._machine.go_on(compiled)
        if is_run or may_raise:
            self.kept.append(statement)
            self._compiled.append(compiled)
            self._is_ended = not is_run
        elif not self._is_ended:
            self._machine = self._started()  # what it did before it raised did not happen
            for each in self._compiled:
                self._machine.go_on(each)
        return is_run

    def _started(self) -> Machine:
        machine = Machine()
        for each in self._earlier:
            machine.start()
            machine.go_on(each)
        machine.start()
        return machine


class ProgramWriter:
    """Writes random programs."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = ["x", "y", "z", "é"]
        self._functions: list[str] = []
        self._count = 0
        self._record = ""
        """The class of records with the field `r` in the current program."""
        self._tag = ""
        """Ends the names of modules: a program that reads a function of an earlier one is not followed."""

    def program(self, earlier: Sequence[str]) -> str:
        """One program of a session. Most statements that would raise are left out, so that the rest is reached."""
        self._record, self._tag = f"Q{len(earlier)}", str(len(earlier))
        trial = _Trial(earlier)
        imported = ", ".join(f"{module} as {module}{self._tag}" for module in MODULES)
        record = f"{self._record} = collections{self._tag}.namedtuple('Q', 'r')"
        trial.add(f"import {imported}\n{record}", may_raise=False)
        for _ in range(self._random.randint(4, 12)):
            trial.add("\n".join(self._statement(0)), may_raise=self._random.random() < 0.1)
        for _ in range(6):
            if trial.add(f"pay(to={self._expression(2)})", may_raise=False):
                break
        for name in self._names:
            trial.add(f"pay(to={name})", may_raise=False)
        return "\n".join(trial.kept or ["pass"])

    def _pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _name(self) -> str:
        return self._random.choice(self._names)

    def _block(self, size: int, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(size):
            lines += self._statement(depth)
        return lines or ["pass"]

    def _statement(self, depth: int) -> list[str]:
        name, other, value = self._name(), self._name(), self._expression(2)
        kind = self._random.randint(0, 26 if depth < 2 else 14)
        match kind:
            case 0 | 1 | 2 | 3:
                return [f"{name} = {value}"]
            case 4:
                return [f"{name}, {other} = {value}, {self._expression(1)}"]
            case 5:
                return [f"{name}{self._subscript()} = {value}"]
            case 6:
                return [f"{name} += {value}"]
            case 7:
                method = self._pick(
                    "append({})", "extend({})", "insert(0, {})", "update({{'a': {}}})", "setdefault('b', {})"
                )
                return [
                    "try:",
                    f"    {name}.{method.format(value)}",
                    "except AttributeError:",
                    f"    {name} = [{value}]",
                ]
            case 8:
                return [f"pay(to={value}, note={self._expression(1)})"]
            case 9:
                return [
                    f"pay({self._pick('', '*')}[{value}])",
                    f"{name} = {{'to': {value}}}",
                    f"pay(**{name})",
                ]
            case 10:
                return [f"print({value})"]
            case 11:
                return [f"{name} = {other}", f"{name}.sort(key=str)" if depth else f"{other} = {name}"]
            case 12:
                return [f"{name}[1:] = [{value}]"]
            case 13:
                target = self._pick(
                    f"{name}[0]", f"{name}['a']", f"{self._record}({name}).r", f"{self._record}({name}).r[0]"
                )
                return [f"{target}{self._pick('[0] = {}', '.append({})', '.update(a={})').format(value)}"]
            case 14:
                return [f"{name}{self._pick('', '[0]')} += ({self._pick(name, other)} := {value})"]
            case 15 | 16:
                return [f"for {name} in {value}:", *_indent(self._block(2, depth + 1))]
            case 17:
                return [
                    f"if {value}:",
                    *_indent(self._block(2, depth + 1)),
                    "else:",
                    *_indent(self._block(1, depth + 1)),
                ]
            case 18:
                return [f"for {name}, {other} in enumerate({value}):", *_indent(self._block(2, depth + 1))]
            case 19:
                error = self._pick("raise ValueError({})", "{}['no']", "int({})").format(value)
                return ["try:", f"    {error}", "except Exception as e:", f"    {name} = str(e)"]
            case 20:
                return [f"for {name}, {other} in {value}[0].items():", *_indent(self._block(2, depth + 1))]
            case 21:
                test = f"({name} := {other}) and ({other} := {self._name()}) and n < 4"
                body = ["n += 1", *self._block(2, depth + 1)]
                return ["n = 0", f"while {test}:", *_indent(body)]
            case 22:
                raised = [f"raise ValueError([{name}])"]
                caught = [f"e.args[0][0] = {value}", f"{other} = e.args"]
                return ["try:", *_indent(raised), "except ValueError as e:", *_indent(caught)]
            case 23:
                return [f"assert {name} or 1, ({other} := {value})"]
            case _:
                return self._function(depth)

    def _function(self, depth: int) -> list[str]:
        self._count += 1
        name = f"f{self._count}"
        parameters = self._pick("v", "v, w='d'", "*v", "v=[]", "v, **w")
        body = self._block(2, depth + 1)
        if self._random.random() < 0.4:
            body = [f"global {self._name()}", *body]
        body.append(f"return {self._pick('v', self._expression(1))}")
        self._functions.append(name)
        return [
            f"def {name}({parameters}):",
            *_indent(["try:", *_indent(body), "except TypeError:", "    return v"]),
        ]

    def _subscript(self) -> str:
        return self._pick("[0]", "['a']", "['b']", "[-1]", "['k']", f"[{self._name()}]", "[0]['a']")

    def _expression(self, depth: int) -> str:
        if depth <= 0:
            return self._pick(self._name(), self._name(), "read(p='ü')", "box.list()", "'lit'", "[]", "{}")
        one, two, name = self._expression(depth - 1), self._expression(depth - 1), self._name()
        templates = [
            one, one, "read()", f"{one}[0]", f"{one}{self._subscript()}", f"{one}[0]['b']", f"{one}[0]['l']", f"[{one}, {two}]",
            f"({one}, {two})[1]", f"{{'a': {one}, 'b': {two}}}", f"{{'a': {one}}}['a']", f"str({one})", f"f'{{{name}}}-{{{name}}}'",
            f"({one} or {two})", f"({one} if {name} else {two})", f"[v for v in {one}]", f"[v['a'] for v in {one} if v]",
            f"{{k: v for k, v in {one}[0].items()}}", f"list({one})", f"sorted({one}, key=str)", f"({one} + {two})",
            f"(lambda v: v)({one})", f"(lambda v, w={two}: [v, w])({one})", f"list(map(lambda v: v, {one}))",
            f"list(filter(lambda v: v, {one}))", f"''.join(map(str, {one}))", f"max({one}, key=str)", f"dict({one}[0])",
            f"next(iter({one}))", f"({name} := {one})", f"{one}[1:]", f"list({one}[0].values())", f"{one}[0].get('a')",
            f"{one}[0].get({name}, {two})", f"list(zip({one}, {two}))", f"[*{one}, {two}]", f"{{**{one}[0], 'z': {two}}}",
            f"str({one}).replace('l', str({two}), 2)", f"{one}.copy()", f"'%s' % ({one},)", f"str({one}).split()", f"sum([{one}], [])",
            f"({name} and ({self._name()} := {one}))", f"(({name} := {one}) if {self._name()} else {two})", f"'a b'.split()[:0] + [{one}]",
            "'a b'.split()", "''.split()", f"type('')({one})", f"type([])([{one}])", f"sum([], [{one}])", f"dict(**{{'a': {one}}})",
            f"(lambda **w: w)(**{{str({one}): {two}}})", f"ValueError({one}, {two}).args", f"list(dict.fromkeys([str({one})]))",
            f"copy{self._tag}.deepcopy({one})", f"copy{self._tag}.copy([{one}])[0]", f"functools{self._tag}.reduce(lambda v, w: w, {one})",
            f"json{self._tag}.loads(json{self._tag}.dumps({one}, ensure_ascii=False))", f"list(itertools{self._tag}.chain({one}, {two}))",
            f"collections{self._tag}.deque({one})", f"collections{self._tag}.defaultdict(lambda: {one})['q']", f"re{self._tag}.split('l', str({one}))",
            f"functools{self._tag}.partial(lambda v, w: v, {one})({two})", f"[w for _, w in itertools{self._tag}.groupby({one}, key=str)]",
            f"{self._record}({one}).r", f"{self._record}({one}).r[0]", f"{one}[slice(0, 2)]", f"{{str({name} := {one}): {self._name()}}}",
            f"(v for v in {one})", f"{one}.pop()", f"{one}[0].pop('a', {two})", f"{{v for v in str({one})}}", f"reversed({one})",
        ]  # fmt: skip
        templates += [f"{self._random.choice(self._functions)}({one})"] * 4 if self._functions else []
        return self._random.choice(templates)


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
