"""What a machine knows between two steps, and what procedures of Python may do with it.

The loop of steps, unwinding and the look at memory work on these fields from outside; the machine above puts them together.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, final

from holdfast.core import JsonObject
from holdfast.guests.lisp.data import Datum, Frame, HostProcedure, Operation, Primitive, kind_of
from holdfast.guests.lisp.errors import Crowded, LimitReached, LispError
from holdfast.guests.lisp.host_calls import name_arguments
from holdfast.guests.lisp.json_bridge import to_json
from holdfast.guests.lisp.vm.compiler import BUDGET_END, CATCHER, HALTED
from holdfast.guests.lisp.vm.environment import Closure, Root, Template
from holdfast.guests.lisp.vm.limits import Budget, Meter
from holdfast.guests.lisp.vm.state import Context, State

Continuation = tuple[Template, int, Frame | None, Context]
"""What to go on with when a value is there: code, where in it, its frame, and its surroundings."""


class Call:
    """A wish that waits for the host's answer."""

    __slots__ = ("arguments", "operation")

    def __init__(self, operation: str, arguments: JsonObject) -> None:
        self.operation, self.arguments = operation, arguments


@final
class Control(HostProcedure):
    """A procedure written in Python that is handed the machine: it takes time, moves the control, or asks the host."""

    __slots__ = ("function",)

    def __init__(
        self, name: str, function: "Callable[[Registers, list[Datum]], None]", least: int, most: int | None
    ) -> None:
        super().__init__(name, least, most)
        self.function = function


class Registers(ABC):
    """The fields of a machine."""

    def __init__(
        self,
        state: State,
        meter: Meter,
        *,
        operations: Mapping[str, Operation],
        seed: int,
        now_ms: int,
        is_pure: bool = False,
    ) -> None:
        self.state = state
        self.meter = meter
        self.operations = operations
        self.random_state = seed
        self.now_ms = now_ms
        self.is_pure = is_pure
        """Whether it may ask the host nothing: a macro at work."""
        self.forms: list[Datum] = []
        """What is still to be run of the program, last form first."""
        self.prepared: list[Template] = []
        """Forms that are ready to run, last first."""
        self.value: Datum = None
        self.waiting: Call | None = None
        self.permitted: set[str] = set()
        """Parts of the language that the host has allowed in this run."""
        self.control: tuple[Control, list[Datum]] | None = None
        """A control procedure that is to run next."""
        self.stack: list[Any] = []
        self.continuation: list[Continuation] = []
        self.context = Context(state.root, state.facts)
        self.template: Template = HALTED
        self.pc = 0
        self.frame: Frame | None = None

    @abstractmethod
    def prepare(self, form: Datum, root: Root) -> Template:
        """The code of a form of a top level."""

    def tool(self, name: str) -> Operation:
        """What an undefined name may still be: a tool of the host."""
        operation = self.operations.get(name)
        if operation is None:
            raise LispError("unbound-variable", f"{name!r} is not defined")
        return operation

    def leave_steps(self, base: int) -> None:
        """Note what the procedure on the stack, with its arguments above it, is to do outside the loop of steps."""
        callee, *arguments = self.stack[base - 1 :]
        del self.stack[base - 1 :]
        self._defer(callee, arguments)

    def charge(self, *, steps: int = 0, size: int = 0) -> None:
        """Account for work and memory before they are taken. Raises Crowded where memory must be looked at first."""
        if size and not self.meter.has_room(size):
            if self.meter.is_measured:
                limit = self.meter.memory_bytes
                raise LimitReached("memory_bytes", f"the run needs more than {limit} bytes")
            raise Crowded
        self.meter.steps += steps
        self.meter.new_bytes += size
        if self.context.budget is not None:
            self.context.budget.settle("steps", steps)

    # How a control procedure ends: with exactly one of these

    def give(self, value: Datum) -> None:
        """Return a value to whoever waits for it."""
        self.stack.append(value)
        self.template, self.pc, self.frame, self.context = self.continuation.pop()

    def enter(self, callee: Datum, arguments: list[Datum]) -> None:
        """Call a procedure in place of the present one."""
        if isinstance(callee, Closure):
            frame: Frame = [callee.frame, *arguments]
            template = callee.template
            if len(arguments) != template.arity or template.takes_rest:
                template.take_rest(frame)
            frame.extend(template.extra)
            self.template, self.pc, self.frame = template, 0, frame
        elif isinstance(callee, Primitive):
            callee.check(len(arguments))
            self.give(callee.function(*arguments))
        else:
            self._defer(callee, arguments)

    def enter_catching(self, thunk: Datum) -> None:
        """Call a procedure; what goes wrong in it comes back as an error outcome, and its value as an ok one."""
        self.continuation.append((CATCHER, 0, [None, len(self.stack)], self.context))
        self.enter(thunk, [])

    def enter_budget(self, budget: Budget, thunk: Datum) -> None:
        """Call a procedure inside a budget; if that is spent, a nonconverged outcome comes back."""
        self.continuation.append((BUDGET_END, 0, [None, len(self.stack), budget], self.context))
        self.enter_within(replace(self.context, budget=budget), thunk)

    def enter_within(self, context: Context, thunk: Datum) -> None:
        """Call a procedure in other surroundings."""
        self.context = context
        self.enter(thunk, [])

    def request(self, operation: str, arguments: Mapping[str, Datum]) -> None:
        """Ask the host to carry something out; its answer is the value."""
        if self.is_pure:
            message = f"a macro cannot ask the host for {operation!r}; do that where the macro is used"
            raise LispError("macro-error", message)
        payload = to_json(dict(arguments))
        assert isinstance(payload, dict)
        if self.context.budget is not None:
            self.context.budget.reserve("calls")
        self.meter.count_call()
        self.waiting = Call(operation, payload)

    def use(self, operation: str) -> None:
        """Ask the host, once a run, whether a part of the language may be used; the value is nil."""
        if self.is_pure:
            raise LispError(
                "macro-error", f"a macro cannot use {operation!r}; do that where the macro is used"
            )
        if operation in self.permitted:
            self.give(None)
        else:
            self.waiting = Call(operation, {})

    def _defer(self, callee: Datum, arguments: list[Datum]) -> None:
        """Let the callee run next, outside the loop of steps and with nothing of the present one on the host's stack."""
        if isinstance(callee, Control):
            self.control = (callee, arguments)
        elif isinstance(callee, Operation):
            self.control = (OPERATE, [callee, *arguments])
        else:
            raise LispError("type-error", f"{kind_of(callee)} cannot be called")


def _operate(machine: Registers, arguments: list[Datum]) -> None:
    operation, *given = arguments
    assert isinstance(operation, Operation)
    machine.request(operation.operation, name_arguments(operation.name, operation.positions, given))


OPERATE = Control("%operate", _operate, 1, None)
"""What calling an operation comes to: it and its arguments are handed to this."""
