"""The interpreter loop over instructions, and unwinding to the innermost `try` or `with-budget`.

A Lisp program spends its time in this loop, so everything hot is a local variable. The loop writes the machine's registers
back whenever it stops, so they are complete between two steps. The branches are ordered by how often they are taken.
"""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

from holdfast.guests.lisp.data import UNBOUND, Frame, LispOutcome, Primitive
from holdfast.guests.lisp.errors import LispError, SourcePlace
from holdfast.guests.lisp.vm.compiler import (
    BRANCH,
    BUDGET_END,
    BUDGETED,
    CALL,
    CATCHER,
    CAUGHT,
    CLOSURE,
    CONSTANT,
    DEFINE,
    EITHER,
    ENTER,
    FAR,
    GLOBAL,
    HALT,
    JUMP,
    LEAVE,
    LOCAL,
    OUTER,
    PEEK,
    POP,
    RETURN,
    SET_GLOBAL,
    SET_LOCAL,
    TABLE,
    TAIL_CALL,
    compile_template,
)
from holdfast.guests.lisp.vm.environment import Cell, Closure, Template
from holdfast.guests.lisp.vm.limits import BudgetExhausted, Meter
from holdfast.guests.lisp.vm.registers import Registers

_CALLS = frozenset((CALL, TAIL_CALL))


def run_steps(machine: Registers, limit: int) -> bool:
    """Run at most `limit` steps. True at the end of a form; False if the steps are used up or a control procedure is next."""
    stack, continuation, meter = machine.stack, machine.continuation, machine.meter
    template, pc, context = machine.template, machine.pc, machine.context
    # Any: checking what the compiler and this loop put there would cost more than the step itself.
    frame: Any = machine.frame
    argument: Any = None
    code: Any = template.code or compile_template(template)
    push, pop = stack.append, stack.pop
    used = 0
    try:
        for used in range(1, limit + 1):  # noqa: B007
            operation, argument = code[pc]
            pc += 1
            if operation == LOCAL:
                push(frame[argument])
            elif operation == CONSTANT:
                push(argument)
            elif operation == GLOBAL:
                value = argument.value
                push(value if value is not UNBOUND else machine.tool(argument.name))
            elif operation in _CALLS:
                base = len(stack) - argument
                callee = stack[base - 1]
                kind = type(callee)
                if kind is Primitive:
                    value = callee.function(*stack[base:])
                    del stack[base:]
                    stack[-1] = value
                    if operation == TAIL_CALL:
                        template, pc, frame, context = continuation.pop()
                        code = template.code
                    continue
                if operation == CALL:
                    continuation.append((template, pc, frame, context))
                if kind is not Closure:
                    machine.defer_call(base)
                    break
                template = callee.template
                code = template.code or compile_template(template)
                frame, pc = _call_frame(callee, stack, base, argument, meter), 0
            elif operation == BRANCH:
                value = pop()
                if value is False or value is None:
                    pc = argument
            elif operation == RETURN:
                template, pc, frame, context = continuation.pop()
                code = template.code
            elif operation == OUTER:
                push(frame[0][argument])
            elif operation == POP:
                pop()
            elif operation == JUMP:
                pc = argument
            elif operation == ENTER:
                frame = _let_frame(frame, stack, argument, meter)
            elif operation == LEAVE:
                frame = frame[0]
            elif operation == EITHER:
                value = stack[-1]
                if value is False or value is None:
                    pop()
                else:
                    pc = argument
            elif operation == BUDGETED:
                # The outer context is restored already; stop, so that the allowance is computed again.
                break
            elif operation == HALT:
                machine.value = pop()
                return True
            else:
                _ON_STACK[operation](stack, frame, argument)
    except TypeError:
        # Counting the arguments of a primitive before each call would cost more than checking after an error.
        callee = stack[-argument - 1] if isinstance(argument, int) and argument < len(stack) else None
        if isinstance(callee, Primitive):
            callee.check(argument)
        raise
    finally:
        machine.template, machine.pc, machine.frame, machine.context = template, pc, frame, context
        meter.count_steps(used)
        if context.budget is not None:
            context.budget.charge("steps", used)
    return False


def _call_frame(callee: Closure, stack: list[Any], base: int, count: int, meter: Meter) -> Frame:
    """The frame of a call: the closure's frame, the arguments from the stack, and space for local definitions."""
    frame = stack[base - 1 :]
    del stack[base - 1 :]
    frame[0] = callee.frame
    template = callee.template
    if count != template.arity or template.takes_rest:
        template.take_rest(frame)
    if template.extra:
        frame.extend(template.extra)
        meter.new_bytes += 8 * len(template.extra)
    return frame


def _let_frame(frame: Frame | None, stack: list[Any], argument: tuple[int, int], meter: Meter) -> Frame:
    """A frame inside the current one, with values from the stack."""
    count, extra = argument
    base = len(stack) - count
    inner: Frame = [frame, *stack[base:]]
    del stack[base:]
    if extra:
        inner.extend([UNBOUND] * extra)
        meter.new_bytes += 8 * extra
    return inner


# Instructions that only change the stack: each gets the stack, the frame and the instruction's argument.


def _far(stack: list[Any], frame: Any, argument: tuple[int, int, str]) -> None:
    depth, index, name = argument
    for _ in range(depth):
        frame = frame[0]
    if frame[index] is UNBOUND:
        raise LispError("unbound-variable", f"{name!r} is used before its definition")
    stack.append(frame[index])


def _closure(stack: list[Any], frame: Any, template: Template) -> None:
    stack.append(Closure(template, frame))


def _set_local(stack: list[Any], frame: Any, argument: tuple[int, int]) -> None:
    depth, index = argument
    for _ in range(depth):
        frame = frame[0]
    frame[index] = stack[-1]
    stack[-1] = None


def _define(stack: list[Any], frame: Any, cell: Cell) -> None:
    cell.value = stack[-1]
    stack[-1] = None


def _set_global(stack: list[Any], frame: Any, cell: Cell) -> None:
    if cell.value is UNBOUND:
        raise LispError("unbound-variable", f"{cell.name!r} is not defined, so it cannot be set")
    _define(stack, frame, cell)


def _peek(stack: list[Any], frame: Any, cell: Cell) -> None:
    stack.append(cell.value)


def _table(stack: list[Any], frame: Any, count: int) -> None:
    base = len(stack) - 2 * count
    entries = zip(stack[base::2], stack[base + 1 :: 2], strict=True)
    del stack[base:]
    stack.append({name: value for name, value in entries if value is not UNBOUND})


def _caught(stack: list[Any], frame: Any, argument: object) -> None:
    stack[-1] = LispOutcome("ok", {"value": stack[-1]})


_ON_STACK: dict[int, Callable[[list[Any], Any, Any], None]] = {
    FAR: _far,
    CLOSURE: _closure,
    SET_LOCAL: _set_local,
    DEFINE: _define,
    SET_GLOBAL: _set_global,
    PEEK: _peek,
    TABLE: _table,
    CAUGHT: _caught,
}


_AFTER_RESULT = 1
"""Where native code continues once its result is on the stack."""
_MAX_TRACE_CALLS = 9
_MAX_SEARCH = 1000
"""A recursion may be deep. If its first thousand calls do not show the caller, more will not."""


def locate(machine: Registers, error: LispError) -> None:
    """Add the place and the callers to an error. Places in the language's own code are left out."""
    calls = list(islice(_active_calls(machine), _MAX_TRACE_CALLS))
    if calls and error.place is None:
        _, error.place = calls.pop(0)
    if not error.trace:
        lines = [f"  called from {name or 'the top level'}, {place}" for name, place in calls]
        error.trace = tuple(lines if len(calls) < _MAX_TRACE_CALLS - 1 else [*lines, "  ..."])


def place_of_call(machine: Registers) -> SourcePlace | None:
    """Where the program calls the procedure that makes the pending call; None if that is not known."""
    _, place = next(_active_calls(machine), ("", None))
    return place


def unwind_to_try(machine: Registers, error: LispError) -> bool:
    """Unwind to the innermost `try`, which returns the error as an outcome. False if there is none."""
    while machine.continuation:
        _pop_continuation(machine)
        if machine.template is CATCHER:
            _deliver(machine, LispOutcome("error", {"message": error.message, "code": error.code}))
            return True
    return False


def unwind_to_budget(machine: Registers, exhausted: BudgetExhausted) -> None:
    """Unwind to the exhausted `with-budget`, which returns a nonconverged outcome."""
    while (
        machine.template is not BUDGET_END
        or machine.frame is None
        or machine.frame[2] is not exhausted.budget
    ):
        _pop_continuation(machine)
    iterations = int(exhausted.budget.used.get("iterations", 0))
    fields = {"value": None, "iterations": iterations, "reason": "budget", "dimension": exhausted.dimension}
    _deliver(machine, LispOutcome("nonconverged", fields))


def _pop_continuation(machine: Registers) -> None:
    machine.template, machine.pc, machine.frame, machine.context = machine.continuation.pop()


def _deliver(machine: Registers, outcome: LispOutcome) -> None:
    """Make the outcome the result of the current native code, whose frame has the height of the stack."""
    assert machine.frame is not None
    del machine.stack[machine.frame[1] :]
    machine.stack.append(outcome)
    machine.pc = _AFTER_RESULT


def _active_calls(machine: Registers) -> Iterator[tuple[str, SourcePlace]]:
    """The procedure and place of every active call in the program itself, innermost first."""
    here = (machine.template, machine.pc)
    callers = ((template, pc) for template, pc, _, _ in islice(reversed(machine.continuation), _MAX_SEARCH))
    for number, (template, pc) in enumerate(chain([here], callers)):
        place = template.places.get(pc - 1)
        is_duplicate = number == 1 and (template, pc) == here
        if place is not None and template.root.base is not None and not is_duplicate:
            yield template.node.name, place
