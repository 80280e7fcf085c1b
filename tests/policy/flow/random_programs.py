"""Random programs that move values around, run by CPython with values that show where they came from.

Every field of a result is made of one character of its own, which survives slicing, joining, sorting and every other text
operation. A character in an argument of `pay` therefore shows that this field flowed there.
"""

import inspect
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.policy.flow.result import Signature

TOOLS = {
    "read": Signature(operation="read", parameters={"p": "p"}),
    "box.list": Signature(operation="box.list", parameters={"q": "q"}),
    "pay": Signature(operation="pay", parameters={"to": "to", "note": "note"}),
}
_FIRST_MARK = 0xE000
FIELDS = (("a",), ("b", "a"), ("b", "c"), ("l",), ("k", "x", "a"))
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


class Machine:
    """Runs programs one after another, with the same variables."""

    def __init__(self) -> None:
        self.payments: list[Payment] = []
        self.shown: set[str] = set()
        self._steps = 0
        box = type("box", (), {"list": staticmethod(lambda q="": result("box.list"))})
        self.variables: dict[str, Any] = {
            "read": lambda p="": result("read"), "box": box, "pay": self._pay, "print": self._print,
        }  # fmt: skip

    def run(self, code: str) -> bool:
        """Run a program to its end, to an exception, or for a number of lines. Returns whether it came to its end."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            try:
                compiled = compile(code, "<program>", "exec")
            except SyntaxError:
                return False
        self._lines = code.encode().split(b"\n")
        self._steps = 0
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
        large = (each for each in self.variables.values() if isinstance(each, str | list | dict))
        if self._steps > 400 or any(len(each) > 3_000 for each in large):
            raise TimeoutError("the program takes too long, or too much")
        return self._trace

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


class ProgramWriter:
    """Writes random programs."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = ["x", "y", "z", "é"]
        self._functions: list[str] = []
        self._count = 0

    def program(self, earlier: str) -> str:
        """One program of a session. Most statements that would raise are left out, so that the rest is reached."""
        kept: list[str] = []
        for _ in range(self._random.randint(4, 12)):
            added = self._statement(0)
            if self._random.random() < 0.1 or Machine().run("\n".join([earlier, *kept, *added])):
                kept += added
        for _ in range(6):
            payment = f"pay(to={self._expression(2)})"
            if Machine().run("\n".join([earlier, *kept, payment])):
                kept.append(payment)
                break
        return "\n".join(kept or ["pass"])

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
        kind = self._random.randint(0, 24 if depth < 2 else 12)
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
            case 13 | 14:
                return [f"for {name} in {value}:", *_indent(self._block(2, depth + 1))]
            case 15:
                return [
                    f"if {value}:",
                    *_indent(self._block(2, depth + 1)),
                    "else:",
                    *_indent(self._block(1, depth + 1)),
                ]
            case 16:
                return [f"for {name}, {other} in enumerate({value}):", *_indent(self._block(2, depth + 1))]
            case 17:
                error = self._pick("raise ValueError({})", "{}['no']", "int({})").format(value)
                return ["try:", f"    {error}", "except Exception as e:", f"    {name} = str(e)"]
            case 18:
                return [f"for {name}, {other} in {value}[0].items():", *_indent(self._block(2, depth + 1))]
            case 19:
                test = f"({name} := {other}) and ({other} := {self._name()}) and n < 4"
                body = ["n += 1", *self._block(2, depth + 1)]
                return ["n = 0", f"while {test}:", *_indent(body)]
            case 20:
                raised = [f"raise ValueError([{name}])"]
                caught = [f"e.args[0][0] = {value}", f"{other} = e.args"]
                return ["try:", *_indent(raised), "except ValueError as e:", *_indent(caught)]
            case 21:
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
            f"(v for v in {one})", f"{one}.pop()", f"{one}[0].pop('a', {two})", f"{{v for v in str({one})}}", f"reversed({one})",
        ]  # fmt: skip
        templates += [f"{self._random.choice(self._functions)}({one})"] * 4 if self._functions else []
        return self._random.choice(templates)


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
