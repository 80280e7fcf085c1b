"""The registers of the machine, and the operations that procedures written in Python may use.

The interpreter, unwinding and memory measurement work on these fields from outside; `Machine` combines them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, final

from holdfast.core import JsonObject
from holdfast.guests.lisp.data import Datum, Frame, HostProcedure, Operation, Primitive, kind_of
from holdfast.guests.lisp.errors import LimitReached, LispError, MemoryCheckNeeded
from holdfast.guests.lisp.host_calls import name_arguments, with_long_content
from holdfast.guests.lisp.json_bridge import to_json
from holdfast.guests.lisp.vm.compiler import BUDGET_END, CATCHER, HALTED
from holdfast.guests.lisp.vm.environment import Closure, Root, Template
from holdfast.guests.lisp.vm.limits import Meter, ScopedBudget
from holdfast.guests.lisp.vm.state import Context, LispState

Continuation = tuple[Template, int, Frame | None, Context]
"""Where to continue with a value: code, position in it, frame and context."""


class HostCall:
    """A call that waits for the host's answer."""

    __slots__ = ("arguments", "is_base64", "operation")

    def __init__(self, operation: str, arguments: JsonObject, is_base64: bool = False) -> None:
        self.operation, self.arguments = operation, arguments
        self.is_base64 = is_base64
        """Whether the answer is a text that travels as base64, because it would take too much memory as it is."""


@final
class Control(HostProcedure):
    """A procedure written in Python that gets the machine: it takes time, transfers control, or calls the host."""

    __slots__ = ("function",)

    def __init__(
        self,
        name: str,
        function: "Callable[[Registers, list[Datum]], None]",
        min_arguments: int,
        max_arguments: int | None,
    ) -> None:
        super().__init__(name, min_arguments, max_arguments)
        self.function = function


class Registers(ABC):
    """The registers of a machine."""

    def __init__(
        self,
        state: LispState,
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
        """Whether it must not call the host, because it runs a macro."""
        self.forms: list[Datum] = []
        """The forms that have not been expanded yet, last form first."""
        self.prepared: list[Template] = []
        """The forms that are ready to run, last form first."""
        self.value: Datum = None
        self.pending_call: HostCall | None = None
        self.permitted: set[str] = set()
        """Features of the language that the host has allowed in this run."""
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

    def defer_call(self, base: int) -> None:
        """Note what the procedure on the stack, with its arguments above it, is to do outside the loop of steps."""
        callee, *arguments = self.stack[base - 1 :]
        del self.stack[base - 1 :]
        self._defer(callee, arguments)

    def charge(self, *, steps: int = 0, size: int = 0, text: int = 0) -> None:
        """Charge work and memory in advance. Raises MemoryCheckNeeded if memory must be measured first."""
        if (size or text) and not self.meter.has_room(size, text=text):
            if self.meter.is_measured:
                limit = self.meter.object_bytes if size else self.meter.memory_bytes
                raise LimitReached("memory_bytes", f"the run needs more than {limit} bytes")
            raise MemoryCheckNeeded
        self.meter.steps += steps
        self.meter.new_bytes += size
        self.meter.new_text_bytes += text
        if self.context.budget is not None:
            self.context.budget.charge("steps", steps)

    # A control procedure ends with exactly one of these.

    def return_value(self, value: Datum) -> None:
        """Return a value to the continuation."""
        self.stack.append(value)
        self.template, self.pc, self.frame, self.context = self.continuation.pop()

    def enter(self, callee: Datum, arguments: list[Datum]) -> None:
        """Call a procedure in place of the current one (a tail call)."""
        if isinstance(callee, Closure):
            frame: Frame = [callee.frame, *arguments]
            template = callee.template
            if len(arguments) != template.arity or template.takes_rest:
                template.take_rest(frame)
            frame.extend(template.extra)
            self.template, self.pc, self.frame = template, 0, frame
        elif isinstance(callee, Primitive):
            callee.check(len(arguments))
            self.return_value(callee.function(*arguments))
        else:
            self._defer(callee, arguments)

    def enter_catching(self, thunk: Datum) -> None:
        """Call a procedure. Its error becomes an error outcome, and its value an ok outcome."""
        self.continuation.append((CATCHER, 0, [None, len(self.stack)], self.context))
        self.enter(thunk, [])

    def enter_budget(self, budget: ScopedBudget, thunk: Datum) -> None:
        """Call a procedure within a budget. If the budget is exhausted, the result is a nonconverged outcome."""
        self.continuation.append((BUDGET_END, 0, [None, len(self.stack), budget], self.context))
        self.enter_in_context(replace(self.context, budget=budget), thunk)

    def enter_in_context(self, context: Context, thunk: Datum) -> None:
        """Call a procedure in another context."""
        self.context = context
        self.enter(thunk, [])

    def request(self, operation: str, arguments: Mapping[str, Datum]) -> None:
        """Make a call to the host; its answer becomes the value."""
        if self.is_pure:
            message = f"a macro cannot call {operation!r}; call it where the macro is used"
            raise LispError("macro-error", message)
        payload = to_json(dict(with_long_content(operation, arguments)))
        assert isinstance(payload, dict)
        if self.context.budget is not None:
            self.context.budget.reserve("calls")
        self.meter.count_call()
        self.pending_call = HostCall(operation, payload)

    def require_permission(self, operation: str) -> None:
        """Ask the host, once per run, whether a language feature may be used; the value is nil."""
        if self.is_pure:
            raise LispError(
                "macro-error", f"a macro cannot use {operation!r}; use it where the macro is used"
            )
        if operation in self.permitted:
            self.return_value(None)
        else:
            self.pending_call = HostCall(operation, {})

    def _defer(self, callee: Datum, arguments: list[Datum]) -> None:
        """Let the callee run next, outside the interpreter loop, so that nothing stays on Python's stack."""
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
"""Executes an operation: it gets the operation and its arguments."""
