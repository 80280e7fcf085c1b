"""The steps of the machine: one loop over instructions, where a Lisp program spends its time.

Everything hot is a local name here. The machine's fields are set again when the loop stops, however it stops, so between two
steps the machine knows everything. Branches stand in the order of how often they are taken.
"""

from typing import Any

from holdfast.guests.lisp.compiler import (
    BRANCH,
    BUDGETED,
    CALL,
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
from holdfast.guests.lisp.data import UNBOUND, LispOutcome, Primitive
from holdfast.guests.lisp.environment import Closure
from holdfast.guests.lisp.faults import Fault
from holdfast.guests.lisp.registers import Registers


def run_steps(machine: Registers, limit: int) -> bool:
    """Run at most so many steps. True at the end of a form; otherwise they are used up, or something else is next."""
    stack, continuation, meter = machine.stack, machine.continuation, machine.meter
    template, pc, context = machine.template, machine.pc, machine.context
    # Any: a check of what the compiler and this loop have put there would cost more than the step itself.
    frame: Any = machine.frame
    argument: Any = None
    code: Any = template.code
    if code is None:
        code = compile_template(template)
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
            elif operation == CALL:
                base = len(stack) - argument
                callee = stack[base - 1]
                kind = type(callee)
                if kind is Primitive:
                    value = callee.function(*stack[base:])
                    del stack[base:]
                    stack[-1] = value
                elif kind is Closure:
                    continuation.append((template, pc, frame, context))
                    frame = stack[base - 1 :]
                    del stack[base - 1 :]
                    frame[0] = callee.frame
                    template = callee.template
                    if argument != template.arity or template.takes_rest:
                        template.take_rest(frame)
                    if template.extra:
                        frame.extend(template.extra)
                        meter.new_bytes += 8 * len(template.extra)
                    code = template.code or compile_template(template)
                    pc = 0
                else:
                    continuation.append((template, pc, frame, context))
                    machine.leave_steps(base)
                    break
            elif operation == BRANCH:
                value = pop()
                if value is False or value is None:
                    pc = argument
            elif operation == RETURN:
                template, pc, frame, context = continuation.pop()
                code = template.code
            elif operation == TAIL_CALL:
                base = len(stack) - argument
                callee = stack[base - 1]
                kind = type(callee)
                if kind is Closure:
                    frame = stack[base - 1 :]
                    del stack[base - 1 :]
                    frame[0] = callee.frame
                    template = callee.template
                    if argument != template.arity or template.takes_rest:
                        template.take_rest(frame)
                    if template.extra:
                        frame.extend(template.extra)
                        meter.new_bytes += 8 * len(template.extra)
                    code = template.code or compile_template(template)
                    pc = 0
                elif kind is Primitive:
                    value = callee.function(*stack[base:])
                    del stack[base:]
                    stack[-1] = value
                    template, pc, frame, context = continuation.pop()
                    code = template.code
                else:
                    machine.leave_steps(base)
                    break
            elif operation == OUTER:
                push(frame[0][argument])
            elif operation == FAR:
                depth, index, name = argument
                value = frame
                while depth:
                    value = value[0]
                    depth -= 1
                value = value[index]
                if value is UNBOUND:
                    raise Fault("unbound-variable", f"{name!r} is used before its definition")
                push(value)
            elif operation == POP:
                pop()
            elif operation == JUMP:
                pc = argument
            elif operation == CLOSURE:
                push(Closure(argument, frame))
            elif operation == ENTER:
                count, extra = argument
                base = len(stack) - count
                frame = [frame, *stack[base:]]
                del stack[base:]
                if extra:
                    frame.extend([UNBOUND] * extra)
                    meter.new_bytes += 8 * extra
            elif operation == LEAVE:
                frame = frame[0]
            elif operation == EITHER:
                value = stack[-1]
                if value is False or value is None:
                    pop()
                else:
                    pc = argument
            elif operation == SET_LOCAL:
                depth, index = argument
                target = frame
                while depth:
                    target = target[0]
                    depth -= 1
                target[index] = stack[-1]
                stack[-1] = None
            elif operation == DEFINE:
                argument.value = stack[-1]
                stack[-1] = None
            elif operation == SET_GLOBAL:
                if argument.value is UNBOUND:
                    raise Fault("unbound-variable", f"{argument.name!r} is not defined, so it cannot be set")
                argument.value = stack[-1]
                stack[-1] = None
            elif operation == PEEK:
                push(argument.value)
            elif operation == TABLE:
                base = len(stack) - 2 * argument
                entries = zip(stack[base::2], stack[base + 1 :: 2], strict=True)
                del stack[base:]
                push({name: value for name, value in entries if value is not UNBOUND})
            elif operation == CAUGHT:
                stack[-1] = LispOutcome("ok", {"value": stack[-1]})
            elif operation == BUDGETED:
                # The surroundings are back already; stop, so that the allowance is reckoned anew.
                break
            elif operation == HALT:
                machine.value = pop()
                return True
    except TypeError:
        # Counting the arguments of a primitive before each call would cost more than asking afterwards.
        callee = stack[-argument - 1] if isinstance(argument, int) and argument < len(stack) else None
        if isinstance(callee, Primitive):
            callee.check(argument)
        raise
    finally:
        machine.template, machine.pc, machine.frame, machine.context = template, pc, frame, context
        meter.count_steps(used)
        if context.budget is not None:
            context.budget.settle("steps", used)
    return False
