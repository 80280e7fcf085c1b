"""Type predicates, equality and outcomes."""

from holdfast.guests.lisp.data import (
    EMPTY,
    Datum,
    Keyword,
    LispOutcome,
    Pair,
    Primitive,
    Procedure,
    Symbol,
    kind_of,
    make_list,
)
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.lang.equality import are_equal, are_same
from holdfast.guests.lisp.lib.lists import PAIR_BYTES, list_items
from holdfast.guests.lisp.lib.numbers import integer
from holdfast.guests.lisp.long_text import LongText
from holdfast.guests.lisp.vm.registers import Control, Registers

NEEDS = ("evidence", "reframing", "primitive", "clarification", "approval")


def _equal(machine: Registers, arguments: list[Datum]) -> None:
    equal, work = are_equal(arguments[0], arguments[1])
    machine.charge(steps=work)
    machine.return_value(equal)


def _not(datum: Datum) -> bool:
    return datum is False or datum is None


def _is_number(datum: Datum) -> bool:
    return type(datum) is int or type(datum) is float


def _is_integer(datum: Datum) -> bool:
    return type(datum) is int


def _is_list(datum: Datum) -> bool:
    return type(datum) is Pair or datum is EMPTY


def _is_procedure(datum: Datum) -> bool:
    return isinstance(datum, Procedure)


def _is_nil(datum: Datum) -> bool:
    return datum is None


def _of_type(name: str, *kinds: type) -> Primitive:
    return Primitive(name, lambda datum: type(datum) in kinds, 1, 1)


def _ok(value: Datum = None) -> LispOutcome:
    return LispOutcome("ok", {"value": value})


def _proposed(value: Datum, proposals: Datum = EMPTY) -> LispOutcome:
    return LispOutcome("proposed", {"value": value, "proposals": proposals})


def _needs(need: Datum, description: Datum, context: Datum = None) -> LispOutcome:
    name = need.name.removeprefix("needs-") if isinstance(need, (Symbol, Keyword)) else need
    if name not in NEEDS:
        raise LispError("type-error", f"a need must be one of {', '.join(NEEDS)}")
    if not isinstance(description, str):
        raise LispError(
            "type-error", f"the description of a need must be a string, not {kind_of(description)}"
        )
    return LispOutcome("needs", {"need": name, "description": description, "context": context})


def _nonconverged(value: Datum, iterations: Datum, reason: Datum = "max-iterations") -> LispOutcome:
    name = reason.name if isinstance(reason, Symbol) else reason
    if name not in ("budget", "max-iterations"):
        raise LispError("type-error", "the reason must be budget or max-iterations")
    return LispOutcome("nonconverged", {"value": value, "iterations": integer(iterations), "reason": name})


def _cycle(machine: Registers, arguments: list[Datum]) -> None:
    value, length, *signatures = arguments
    texts = (
        [item for item in list_items(machine, signatures[0]) if isinstance(item, str)] if signatures else []
    )
    machine.charge(size=PAIR_BYTES * len(texts))
    fields = {"value": value, "length": integer(length), "signatures": make_list(texts)}
    machine.return_value(LispOutcome("cycle", fields))


def _failed(message: Datum, code: Datum = "error") -> LispOutcome:
    name = code.name if isinstance(code, (Symbol, Keyword)) else code
    if not isinstance(message, str) or not isinstance(name, str):
        raise LispError("type-error", "the message and the code of an error must be text")
    return LispOutcome("error", {"message": message, "code": name})


def outcome(datum: Datum) -> LispOutcome:
    """The datum, if it is an outcome. Raises a LispError otherwise."""
    if isinstance(datum, LispOutcome):
        return datum
    raise LispError("type-error", f"expected an outcome, not {kind_of(datum)}")


def _tag(datum: Datum) -> Symbol:
    return Symbol(outcome(datum).tag)


def _value(datum: Datum) -> Datum:
    return outcome(datum).fields.get("value")


def _field(datum: Datum, name: Datum) -> Datum:
    if not isinstance(name, (Keyword, Symbol)):
        raise LispError("type-error", f"the name of a field must be a keyword or symbol, not {kind_of(name)}")
    return outcome(datum).fields.get(name.name)


def _is_success(datum: Datum) -> bool:
    return outcome(datum).tag in ("ok", "proposed")


def _is_blocked(datum: Datum) -> bool:
    return outcome(datum).tag in ("needs", "error")


def _bind(machine: Registers, arguments: list[Datum]) -> None:
    """Call `then` with the value of an ok outcome; any other outcome is returned unchanged. A plain value counts as ok."""
    value, then = arguments
    if not isinstance(value, LispOutcome):
        machine.enter(then, [value])
    elif value.tag == "ok":
        machine.enter(then, [value.fields["value"]])
    else:
        machine.return_value(value)


BASICS = (
    Primitive("eq?", are_same, 2, 2),
    Control("equal?", _equal, 2, 2),
    Primitive("not", _not, 1, 1),
    Primitive("number?", _is_number, 1, 1),
    Primitive("integer?", _is_integer, 1, 1),
    Primitive("list?", _is_list, 1, 1),
    Primitive("procedure?", _is_procedure, 1, 1),
    Primitive("nil?", _is_nil, 1, 1),
    _of_type("string?", str, LongText),
    _of_type("symbol?", Symbol),
    _of_type("keyword?", Keyword),
    _of_type("boolean?", bool),
    _of_type("table?", dict),
    _of_type("outcome?", LispOutcome),
    Primitive("ok", _ok, 0, 1),
    Primitive("proposed", _proposed, 1, 2),
    Primitive("needs", _needs, 2, 3),
    Primitive("nonconverged", _nonconverged, 2, 3),
    Control("cycle", _cycle, 2, 3),
    Primitive("failed", _failed, 1, 2),
    Primitive("outcome-tag", _tag, 1, 1),
    Primitive("outcome-value", _value, 1, 1),
    Primitive("outcome-field", _field, 2, 2),
    Primitive("success?", _is_success, 1, 1),
    Primitive("blocked?", _is_blocked, 1, 1),
    Control("bind", _bind, 2, 2),
)
