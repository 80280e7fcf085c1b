"""A reference evaluator that uses Python's own recursion, to compare the machine with. Only for small programs."""

from collections.abc import Callable
from typing import Any

from holdfast.guests.lisp.data import EMPTY, Pair, Symbol, iterate


class Scope(dict[str, Any]):
    """Variables, with those of the enclosing scope."""

    def __init__(self, outer: "Scope | None", **names: Any) -> None:
        super().__init__(names)
        self.outer = outer

    def find(self, name: str) -> "Scope":
        if name in self:
            return self
        assert self.outer is not None, name
        return self.outer.find(name)


TOP: dict[str, Callable[..., Any]] = {
    "+": lambda *numbers: sum(numbers),
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "<": lambda a, b: a < b,
    "=": lambda a, b: a == b,
    "list": lambda *items: list(items),
}


def evaluate(form: Any, scope: Scope) -> Any:
    """The value of a form; lists are Python lists."""
    if isinstance(form, Symbol):
        return TOP[form.name] if form.name in TOP else scope.find(form.name)[form.name]
    if not isinstance(form, Pair):
        return form
    head, *rest = iterate(form)
    match head.name if isinstance(head, Symbol) else "":
        case "quote":
            return plain(rest[0])
        case "if":
            return evaluate(rest[1] if is_true(evaluate(rest[0], scope)) else rest[2], scope)
        case "begin":
            return [evaluate(item, scope) for item in rest][-1]
        case "set!":
            scope.find(rest[0].name)[rest[0].name] = evaluate(rest[1], scope)  # type: ignore[attr-defined]
            return None
        case "let":
            names = {pair.first.name: evaluate(pair.rest.first, scope) for pair in iterate(rest[0])}  # type: ignore[attr-defined]
            return [evaluate(item, Scope(scope, **names)) for item in rest[1:]][-1]
        case "lambda":
            parameters = [parameter.name for parameter in iterate(rest[0])]  # type: ignore[attr-defined]

            def call(*given: Any) -> Any:
                inner = Scope(scope, **dict(zip(parameters, given, strict=True)))
                return [evaluate(item, inner) for item in rest[1:]][-1]

            return call
        case "and":
            value: Any = True
            for item in rest:
                value = evaluate(item, scope)
                if not is_true(value):
                    return value
            return value
        case "or":
            value = False
            for item in rest:
                value = evaluate(item, scope)
                if is_true(value):
                    return value
            return value
        case _:
            function = evaluate(head, scope)
            return function(*[evaluate(item, scope) for item in rest])


def is_true(value: Any) -> bool:
    return value is not False and value is not None


def plain(datum: Any) -> Any:
    """Quoted data with Python lists."""
    if datum is EMPTY or isinstance(datum, Pair):
        return [plain(item) for item in iterate(datum)]
    return datum.name if isinstance(datum, Symbol) else datum
