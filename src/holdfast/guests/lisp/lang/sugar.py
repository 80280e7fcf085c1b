"""Syntactic sugar: forms that are rewritten into others, one step at a time, and helpers that take forms apart.

The expander continues with the result of each rewrite.
"""

from collections.abc import Callable

from holdfast.guests.lisp.data import EMPTY, Datum, Keyword, Pair, Symbol, make_list
from holdfast.guests.lisp.errors import LispSyntaxError, SourcePlace
from holdfast.guests.lisp.lang.trampoline import Recursive, run_trampoline


class BuiltinName:
    """In a rewritten form, a procedure of the language, even if the program has redefined its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


def items_of(form: Datum, place: SourcePlace | None) -> list[Datum]:
    """The items of a proper list."""
    items: list[Datum] = []
    while type(form) is Pair:
        items.append(form.first)
        form = form.rest
    if form is not EMPTY:
        raise LispSyntaxError("a dot is not allowed in this form", place=place)
    return items


def arguments_of(form: Pair, usage: str, *, at_least: int, at_most: int | None = None) -> list[Datum]:
    """The arguments of a special form. Raises LispSyntaxError if their number is wrong."""
    arguments = items_of(form.rest, form.place)
    if len(arguments) < at_least or (at_most is not None and len(arguments) > at_most):
        raise LispSyntaxError(f"write {usage}", place=form.place)
    return arguments


def build(place: SourcePlace | None, *items: Datum, tail: Datum = EMPTY) -> Pair:
    """A form with the place of another form."""
    result = tail
    for item in reversed(items):
        result = Pair(item, result, place)
    assert isinstance(result, Pair)
    return result


def bindings_of(datum: Datum, usage: str, place: SourcePlace | None) -> list[tuple[Datum, Datum]]:
    """The `((name value) ...)` of a let."""
    pairs = []
    for binding in items_of(datum, place):
        parts = items_of(binding, place) if isinstance(binding, Pair) else []
        if len(parts) != 2:
            raise LispSyntaxError(f"write {usage}", place=place)
        pairs.append((parts[0], parts[1]))
    return pairs


_BEGIN, _IF, _LET, _LAMBDA, _DEFINE, _COND, _ELSE, _QUOTE = (
    Symbol(name) for name in ("begin", "if", "let", "lambda", "define", "cond", "else", "quote")
)
_KEY = Symbol(" key")
"""No program can write a name with a space, so this one never shadows another."""


def _let(form: Pair) -> Datum:
    usage = "(let ((name value) ...) body ...)"
    arguments = arguments_of(form, usage, at_least=2)
    if isinstance(arguments[0], Symbol):
        return _named_let(form, arguments)
    pairs = bindings_of(arguments[0], usage, form.place)
    function = build(form.place, _LAMBDA, make_list(name for name, _ in pairs), *arguments[1:])
    return build(form.place, function, *(value for _, value in pairs))


def _named_let(form: Pair, arguments: list[Datum]) -> Datum:
    usage = "(let loop ((name value) ...) body ...)"
    if len(arguments) < 3:
        raise LispSyntaxError(f"write {usage}", place=form.place)
    name, pairs = arguments[0], bindings_of(arguments[1], usage, form.place)
    function = build(form.place, _LAMBDA, make_list(name for name, _ in pairs), *arguments[2:])
    definition = build(form.place, _DEFINE, name, function)
    maker = build(form.place, build(form.place, _LAMBDA, EMPTY, definition, name))
    return build(form.place, maker, *(value for _, value in pairs))


def _let_star(form: Pair) -> Datum:
    usage = "(let* ((name value) ...) body ...)"
    bindings, *body = arguments_of(form, usage, at_least=2)
    result = build(form.place, _LET, EMPTY, *body)
    for name, value in reversed(bindings_of(bindings, usage, form.place)):
        result = build(form.place, _LET, make_list([build(form.place, name, value)]), result)
    return result


def _letrec(form: Pair) -> Datum:
    usage = "(letrec ((name value) ...) body ...)"
    bindings, *body = arguments_of(form, usage, at_least=2)
    definitions = [
        build(form.place, _DEFINE, name, value) for name, value in bindings_of(bindings, usage, form.place)
    ]
    inner = build(form.place, _LET, EMPTY, *body)
    return build(form.place, build(form.place, _LAMBDA, EMPTY, *definitions, inner))


def _cond(form: Pair) -> Datum:
    usage = "(cond (test value ...) ... (else value ...))"
    if form.rest is EMPTY:
        return None
    if not isinstance(form.rest, Pair) or not isinstance(form.rest.first, Pair):
        raise LispSyntaxError(f"write {usage}", place=form.place)
    clause, others = form.rest.first, form.rest.rest
    place = clause.place or form.place
    if clause.first == _ELSE:
        if others is not EMPTY:
            raise LispSyntaxError("else must be the last clause of a cond", place=place)
        return Pair(_BEGIN, clause.rest, place)
    remaining = Pair(_COND, others, form.place)
    if clause.rest is EMPTY:
        return build(place, Symbol("or"), clause.first, remaining)
    return build(place, _IF, clause.first, Pair(_BEGIN, clause.rest, place), remaining)


def _case(form: Pair) -> Datum:
    usage = "(case key ((datum ...) value ...) ... (else value ...))"
    key, *clauses = arguments_of(form, usage, at_least=1)
    rewritten: list[Datum] = []
    for clause in clauses:
        if not isinstance(clause, Pair):
            raise LispSyntaxError(f"write {usage}", place=form.place)
        if clause.first == _ELSE:
            rewritten.append(clause)
            continue
        choices = build(form.place, _QUOTE, clause.first)
        test = build(form.place, BuiltinName("member"), _KEY, choices)
        rewritten.append(Pair(test, clause.rest, clause.place))
    return build(
        form.place, _LET, make_list([build(form.place, _KEY, key)]), build(form.place, _COND, *rewritten)
    )


def _and(form: Pair) -> Datum:
    items = items_of(form.rest, form.place)
    result = items.pop() if items else True
    for item in reversed(items):
        result = build(form.place, _IF, item, result, False)
    return result


def _when(form: Pair) -> Datum:
    test, *body = arguments_of(form, "(when test body ...)", at_least=2)
    return build(form.place, _IF, test, build(form.place, _BEGIN, *body), None)


def _unless(form: Pair) -> Datum:
    test, *body = arguments_of(form, "(unless test body ...)", at_least=2)
    return build(form.place, _IF, test, None, build(form.place, _BEGIN, *body))


def _quasiquote(form: Pair) -> Datum:
    (template,) = arguments_of(form, "`template", at_least=1, at_most=1)
    return run_trampoline(_build_template(template, 1, form.place))


def _build_template(template: Datum, depth: int, place: SourcePlace | None) -> Recursive[Datum]:
    """Code that builds the template and evaluates what is unquoted at depth 1."""
    if not isinstance(template, Pair):
        return build(place, _QUOTE, template)
    head = template.first.name if isinstance(template.first, Symbol) else ""
    if head in ("unquote", "quasiquote"):
        (inner,) = arguments_of(template, ",expression", at_least=1, at_most=1)
        if head == "unquote" and depth == 1:
            return inner
        filled = yield _build_template(inner, depth + (1 if head == "quasiquote" else -1), place)
        return build(place, BuiltinName("list"), build(place, _QUOTE, template.first), filled)
    # Item by item and not by recursion along the list: a long template makes one flat call.
    parts: list[Datum] = []
    rest: Datum = template
    while isinstance(rest, Pair) and rest.first != Symbol("unquote"):
        parts.append((yield _part(rest.first, depth, place)))
        rest = rest.rest
    if rest is not EMPTY:
        parts.append((yield _build_template(rest, depth, place)))
    return build(place, BuiltinName("append"), *parts)


def _part(item: Datum, depth: int, place: SourcePlace | None) -> Recursive[Datum]:
    """Code for the piece of a list that one item of a template becomes."""
    if isinstance(item, Pair) and item.first == Symbol("unquote-splicing") and depth == 1:
        (spliced,) = arguments_of(item, ",@expression", at_least=1, at_most=1)
        return spliced
    filled = (
        (yield _build_template(item, depth, place)) if isinstance(item, Pair) else build(place, _QUOTE, item)
    )
    return build(place, BuiltinName("list"), filled)


def _try(form: Pair) -> Datum:
    arguments_of(form, "(try body ...)", at_least=1)
    return build(form.place, BuiltinName("%try"), _thunk(form.rest, form.place))


def _with_budget(form: Pair) -> Datum:
    limits, *_ = arguments_of(form, "(with-budget {:iterations 3} body ...)", at_least=2)
    assert isinstance(form.rest, Pair)
    return build(form.place, BuiltinName("%with-budget"), limits, _thunk(form.rest.rest, form.place))


def _outcome_do(form: Pair) -> Datum:
    usage = "(outcome-do ((name outcome) ...) body ...)"
    bindings, *body = arguments_of(form, usage, at_least=2)
    result = build(form.place, _LET, EMPTY, *body)
    for name, value in reversed(bindings_of(bindings, usage, form.place)):
        then = build(form.place, _LAMBDA, build(form.place, name), result)
        result = build(form.place, BuiltinName("bind"), value, then)
    return result


def _memo(procedure: str, usage: str, *, has_dependencies: bool) -> Callable[[Pair], Datum]:
    """The memo forms: each passes the body as data, the values it refers to, and the body as code."""

    def rewrite(form: Pair) -> Datum:
        arguments_of(form, usage, at_least=2 if has_dependencies else 1)
        body, first = form.rest, []
        if has_dependencies:
            assert isinstance(body, Pair)
            first, body = [body.first], body.rest
        quoted, bound = build(form.place, _QUOTE, body), build(form.place, Symbol("%bindings"), body)
        return build(form.place, BuiltinName(procedure), *first, quoted, bound, _thunk(body, form.place))

    return rewrite


def _fixpoint(procedure: str) -> Callable[[Pair], Datum]:
    def rewrite(form: Pair) -> Datum:
        usage = f"({form.first} body ... :max 100 :watch '(facts bindings world))"
        items = arguments_of(form, usage, at_least=1)
        cut = next((i for i, item in enumerate(items) if isinstance(item, Keyword)), len(items))
        if cut == 0:
            raise LispSyntaxError(f"write {usage}", place=form.place)
        body = build(form.place, *items[:cut])
        return build(form.place, BuiltinName(procedure), _thunk(body, form.place), *items[cut:])

    return rewrite


def _thunk(body: Datum, place: SourcePlace | None) -> Datum:
    return Pair(_LAMBDA, Pair(EMPTY, body, place), place)


SUGAR: dict[str, Callable[[Pair], Datum]] = {
    "let": _let,
    "let*": _let_star,
    "letrec": _letrec,
    "cond": _cond,
    "case": _case,
    "and": _and,
    "when": _when,
    "unless": _unless,
    "quasiquote": _quasiquote,
    "try": _try,
    "with-budget": _with_budget,
    "outcome-do": _outcome_do,
    "memo": _memo("%memo", "(memo (list ref ...) body ...)", has_dependencies=True),
    "memo/cached?": _memo("%memo-cached?", "(memo/cached? (list ref ...) body ...)", has_dependencies=True),
    "memo/auto": _memo("%memo-auto", "(memo/auto body ...)", has_dependencies=False),
    "memo/deps": _memo("%memo-deps", "(memo/deps body ...)", has_dependencies=False),
    "fixpoint": _fixpoint("%fixpoint"),
    "fixpoint/outcome": _fixpoint("%fixpoint-outcome"),
}
