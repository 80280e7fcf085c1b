"""Random programs that choose: what they pay depends on what they read only through tests, counts, keys and exceptions.

A program is run once for each of several texts that `read` can return. Where a payment differs between two runs, `read`
decided about it.
"""

import inspect
import random
import sys
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any

from holdfast.policy.flow.result import Signature

TOOLS = {
    "read": Signature(operation="read", parameters={"p": "p"}),
    "pay": Signature(operation="pay", parameters={"to": "to"}),
}
TEXTS = ("", "a", "b", "ab", "ba", "abc", "c")
Place = tuple[int, int]


class _TooLong(BaseException):
    """The program takes too long. It cannot catch this."""


def payments(compiled: CodeType, lines: list[bytes], text: str) -> dict[Place, list[str]]:
    """What each call of `pay` was given, in order, in a run in which `read` returns a text."""
    paid: dict[Place, list[str]] = {}
    steps = 0

    def pay(to: object) -> None:
        frame = sys._getframe(1)
        line, end_line, start, end = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        offset = [sum(len(each) + 1 for each in lines[: (number or 1) - 1]) for number in (line, end_line)]
        paid.setdefault((offset[0] + (start or 0), offset[1] + (end or 0)), []).append(_shown(to))

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal steps
        # A generator that is thrown away must not raise: nobody could catch it.
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            return None
        steps += 1
        if steps > 600:
            raise _TooLong
        return trace

    variables = {"read": lambda p="": text, "pay": pay}
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(compiled, variables)
    except (Exception, _TooLong):
        pass  # what it paid until then counts
    finally:
        sys.settrace(before)
    return paid


def _shown(value: object) -> str:
    return repr(sorted(value, key=repr)) if isinstance(value, set) else repr(value)


def differing(code: str) -> Iterator[Place]:
    """The calls of `pay` that were given different things in two runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        compiled = compile(code, "<program>", "exec")
    lines = code.encode().split(b"\n")
    runs = [payments(compiled, lines, text) for text in TEXTS]
    for place in {place for run in runs for place in run}:
        lists = [run.get(place, []) for run in runs]
        # A run that ended early made fewer payments; those that were made are compared.
        if any(
            one != other
            for first in lists
            for given in lists
            for one, other in zip(first, given, strict=False)
        ):
            yield place


class ChoiceWriter:
    """Writes random programs over a number `n`, a text `s`, lists `l` and `m`, a dictionary `d` and a set `t`."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._functions: list[str] = []
        self._count = 0

    def program(self) -> str:
        """A program."""
        lines = [
            "n = 0",
            "s = 'a'",
            "l = ['a', 'b']",
            "m = ['c']",
            "d = {'a': '1'}",
            "t = {'a', 'b'}",
            "i = iter('abcd')",
        ]
        for _ in range(self._random.randint(2, 5)):
            lines += self._statement(0)
            if self._random.random() < 0.5:
                lines.append(f"pay(to={self._result()})")
        lines.append(f"pay(to={self._result()})")
        return "\n".join(lines)

    def _pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _result(self) -> str:
        return self._pick(
            "n", "s", "str(l)", "str(m)", "l[0]", "l[-1]", "d.get('a', 'z')", "list(d)[0]", "list(d.values())[-1]", "str(d)",
            "t", "next(i, 'z')", "sum(1 for _ in l)", "[v for v in d]", "min(t, default='z')", "len(l)", "'a' in t", "''.join(l)",
            "[k for k, v in enumerate(m)]", "dict(zip('xyz', l))", "list(reversed(l))", "m[0]", "l",
        )  # fmt: skip

    def _test(self) -> str:
        return self._pick(
            "read()", "'a' in read()", "len(read()) > 1", "read() == 'ab'", "n", "l", "s == 'a'", "'a' in d", "len(t) > 1",
            "not read()", "0 < len(read()) < 3", "any(k in read() for k in 'ab')", "read().startswith('b')", "all(v in t for v in l)",
        )  # fmt: skip

    def _value(self) -> str:
        return self._pick("'b'", "'c'", "s", "'q'", "l[0]", "str(n)", "d.get('b', 'y')")

    def _key(self) -> str:
        return self._pick("read()", "read()[:1]", "'a'", "'b'", "s", "next(i, 'b')")

    def _effect(self) -> str:
        """An expression that changes something."""
        value = self._value()
        effects = [
            f"l.append({value})", "l.pop()", f"l.pop(len({self._key()}) - 1)", "l.clear()", "l.reverse()", f"l.insert(0, {value})",
            f"l.remove({value})", f"m.extend({self._key()})", "m.sort(key=lambda v: v in read())", f"d.pop({self._key()}, 0)",
            f"d.update(b={value})", f"d.update({{{self._key()}: '2'}})", f"d.setdefault({self._key()}, '3')", "d.popitem()",
            f"t.add({self._key()})", f"t.discard({self._key()})", f"t.intersection_update({self._key()})", "t.clear()",
            "next(i, 0)", f"(s := {value})", "(n := n + 1)", f"(l if {self._test()} else m).append('x')",
            f"[l, m][len({self._key()}) % 2].append('w')", "list(i)", "list(map(l.append, 'ef'))",
            f"list(map(lambda v: m.append(v), {self._key()}))", f"[l.append(v) for v in {self._key()}]",
            f"any((s := k) in {self._key()} for k in 'abc')", f"all(l.append(k) or k != {self._key()} for k in 'ab')",
            f"next((v for v in l if v in {self._key()}), 0)", f"(l or m).append({value})", f"max(l, m, key=lambda v: {self._key()} in v).append('k')",
        ]  # fmt: skip
        effects += [f"{name}()" for name in self._functions] * 2
        return self._random.choice(effects)

    def _statement(self, depth: int) -> list[str]:
        match self._random.randint(0, 17 if depth < 2 else 8):
            case 0 | 1 | 2:
                return [self._effect()]
            case 3:
                return [f"{self._test()} {self._pick('and', 'or')} {self._effect()}"]
            case 4:
                return [f"{self._effect()} if {self._test()} else {self._effect()}"]
            case 5:
                return [f"d[{self._key()}] = {self._value()}"]
            case 6:
                return [
                    self._pick(
                        "n += 1",
                        "s += 'b'",
                        "l += ['z']",
                        "t -= {read()}",
                        "t |= set(read())",
                        "d |= {read(): '4'}",
                    )
                ]
            case 7:
                return [
                    self._pick(
                        "del l[0]",
                        "del l[len(read()):]",
                        f"del d[{self._key()}]",
                        f"s, n = {self._value()}, len(l)",
                    )
                ]
            case 8:
                return [f"s = {self._value()} if {self._test()} else {self._value()}"]
            case 9 | 10:
                return [f"if {self._test()}:", *self._block(depth), "else:", *self._block(depth)]
            case 11 | 12:
                over = self._pick(
                    "read()",
                    "l[:]",
                    "'ab'",
                    "range(len(read()))",
                    "enumerate(read())",
                    "zip('ab', read())",
                    "list(d)",
                    "i",
                )
                leave = [f"    if {self._test()}:", f"        {self._pick('break', 'continue')}"]
                return [f"for v in {over}:", *leave, *self._block(depth)]
            case 13:
                return ["k = 0", f"while k < 3 and {self._test()}:", "    k += 1", *self._block(depth)]
            case 14 | 15:
                wrong = self._pick(
                    "int(read())",
                    "l[len(read())]",
                    "{'a': 1}[read()]",
                    "assert read()",
                    "1 / len(read())",
                    self._effect(),
                )
                return [
                    "try:",
                    f"    {wrong}",
                    *self._block(depth),
                    "except Exception as error:",
                    *self._block(depth),
                ]
            case _:
                self._count += 1
                name = f"f{self._count}"
                leave = [f"    if {self._test()}:", "        return"]
                lines = [f"def {name}():", "    global s, n, t", *leave, *self._block(depth)]
                self._functions.append(name)
                return lines

    def _block(self, depth: int) -> list[str]:
        return [
            f"    {line}" for _ in range(self._random.randint(1, 2)) for line in self._statement(depth + 1)
        ]
