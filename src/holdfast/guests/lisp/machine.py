"""The machine that runs Lisp: a stack of values, a stack of what is to be done next, and nothing on the host's stack.

It runs some steps and stops, so that its owner can look at the clock, serve others, answer its calls, or save it:
between two steps everything it knows is in its fields. Below it lie the instructions; above it, the guest.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, assert_never

from holdfast.core import Answer, Failed, JsonObject, Parked, Refused, Returned
from holdfast.guests.lisp.border import from_json, to_json
from holdfast.guests.lisp.budgets import Budget
from holdfast.guests.lisp.context import Context, State
from holdfast.guests.lisp.data import (
    Closure,
    Control,
    Datum,
    Frame,
    Operation,
    Primitive,
    kind_of,
)
from holdfast.guests.lisp.environment import Root, Template
from holdfast.guests.lisp.expander import expand, is_macro_definition
from holdfast.guests.lisp.faults import BudgetSpent, Crowded, Fault, LimitReached
from holdfast.guests.lisp.language import LANGUAGE
from holdfast.guests.lisp.macros import Macros
from holdfast.guests.lisp.meter import Meter
from holdfast.guests.lisp.natives import BUDGET_END, CATCHER, HALTED
from holdfast.guests.lisp.operations import OPERATE
from holdfast.guests.lisp.procedures import fits, take_rest, wrong_count
from holdfast.guests.lisp.steps import run_steps
from holdfast.guests.lisp.unwinding import locate, unwind_to_budget, unwind_to_try

Progress = Literal["working", "crowded", "waiting", "done"]
"""Why the machine stopped: it can go on, memory must be looked at, it waits for an answer, or the program has ended."""

Continuation = tuple[Template, int, Frame | None, Context]
"""What to go on with when a value is there: code, where in it, its frame, and its surroundings."""


class Call:
    """A wish that waits for the host's answer."""

    __slots__ = ("arguments", "operation")

    def __init__(self, operation: str, arguments: JsonObject) -> None:
        self.operation, self.arguments = operation, arguments


class Machine:
    """One run of a program."""

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
        """Operations of the language that the host has allowed in this run."""
        self.control: tuple[Control, list[Datum]] | None = None
        """A control procedure that is to run next."""
        self.stack: list[Any] = []
        self.continuation: list[Continuation] = []
        self.context = Context(state.root, state.facts)
        self.template: Template = HALTED
        self.pc = 0
        self.frame: Frame | None = None

    # Programs

    def load(self, forms: list[Datum]) -> None:
        """Take up a program. Raises Malformed where it is none, before anything of it runs."""
        self.forms = forms[::-1]
        self._prepare()
        self.stack.append(None)  # the value of no form at all, which is where every program begins

    def _prepare(self) -> None:
        """Expand the forms to come, up to one that may change what the others mean."""
        ready = []
        while self.forms:
            form = self.forms.pop()
            ready.append(self.prepare(form, self.state.root))
            if is_macro_definition(form):
                break
        self.prepared = ready[::-1]

    def prepare(self, form: Datum, root: Root) -> Template:
        """The code of a form of the top level."""
        return Template(expand(form, root, Macros(self)), (), root)

    def pure_twin(self) -> "Machine":
        """A machine with the same state and meter that may ask the host nothing."""
        return Machine(
            self.state, self.meter, operations={}, seed=self.random_state, now_ms=self.now_ms, is_pure=True
        )

    # Running

    def advance(self, steps: int) -> Progress:
        """Run about so many steps. Raises Fault where the program does not catch it, and LimitReached."""
        end = self.meter.steps + steps
        while self.meter.steps < end:
            if self.waiting is not None:
                return "waiting"
            if self.meter.is_crowded:
                return "crowded"
            try:
                if self.control is not None:
                    if not self._run_control():
                        return "crowded"
                elif run_steps(self, self._allowance(end - self.meter.steps)) and not self._next_form():
                    return "done"
            except Fault as fault:
                self.fail(fault)
            except OverflowError:
                self.fail(Fault("number-overflow", "the result is too large a number"))
            except BudgetSpent as spent:
                self.control = None
                unwind_to_budget(self, spent)
        return "waiting" if self.waiting is not None else "working"

    def count_seconds(self, *, own: float, wall: float) -> None:
        """Time that the run itself took since the last count, and time that went by."""
        if self.context.budget is not None:
            self.context.budget.settle("time", own)
        self.meter.count_seconds(own=own, wall=wall)

    def _allowance(self, wanted: int) -> int:
        wanted = self.meter.room_for_steps(wanted)
        if self.context.budget is not None:
            exhausted = self.context.budget.exhausted()
            if exhausted is not None:
                raise BudgetSpent(*exhausted)
            room = self.context.budget.room("steps")
            if room is not None:
                wanted = min(wanted, int(room) or 1)
        return wanted

    def _run_control(self) -> bool:
        """Run the control procedure that is next. False where memory has to be looked at first; then it is still next."""
        assert self.control is not None
        control, arguments = self.control
        self.control = None
        self.meter.count_steps(1)
        if not fits(control, len(arguments)):
            raise wrong_count(control, len(arguments))
        try:
            control.function(self, arguments)
        except Crowded:
            self.control = (control, arguments)
            return False
        self.meter.is_measured = False
        return True

    def _next_form(self) -> bool:
        """Begin the next form of the program, if there is one."""
        if not self.prepared:
            self._prepare()
        if not self.prepared:
            return False
        self.template, self.pc, self.frame = self.prepared.pop(), 0, None
        self.continuation.append((HALTED, 0, None, self.context))
        return True

    def leave_steps(self, base: int) -> None:
        """Note what the procedure on the stack, with its arguments above it, is to do outside the loop of steps."""
        callee, *arguments = self.stack[base - 1 :]
        del self.stack[base - 1 :]
        self._defer(callee, arguments)

    def _defer(self, callee: Datum, arguments: list[Datum]) -> None:
        if isinstance(callee, Control):
            self.control = (callee, arguments)
        elif isinstance(callee, Operation):
            self.control = (OPERATE, [callee, *arguments])
        else:
            raise Fault("type-error", f"{kind_of(callee)} cannot be called")

    def tool(self, name: str) -> Operation:
        """What an undefined name may still be: a tool of the host."""
        operation = self.operations.get(name)
        if operation is None:
            raise Fault("unbound-variable", f"{name!r} is not defined")
        return operation

    # What control procedures do: each of these is the last thing they do

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
                take_rest(template, frame)
            frame.extend(template.extra)
            self.template, self.pc, self.frame = template, 0, frame
        elif isinstance(callee, Primitive):
            if not fits(callee, len(arguments)):
                raise wrong_count(callee, len(arguments))
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
        self.context = replace(self.context, budget=budget)
        self.enter(thunk, [])

    def enter_within(self, context: Context, callee: Datum, arguments: list[Datum]) -> None:
        """Call a procedure in other surroundings."""
        self.context = context
        self.enter(callee, arguments)

    def request(self, operation: str, arguments: Mapping[str, Datum]) -> None:
        """Ask the host to carry something out; its answer is the value."""
        if self.is_pure:
            raise Fault(
                "macro-error", f"a macro cannot ask the host for {operation!r}; do that where it is used"
            )
        payload = to_json(dict(arguments))
        assert isinstance(payload, dict)
        if self.context.budget is not None:
            self.context.budget.reserve("calls")
        self.meter.count_call()
        self.waiting = Call(operation, payload)

    def use(self, operation: str) -> None:
        """Ask the host, once a run, whether a part of the language may be used; the value is nil."""
        if self.is_pure:
            raise Fault("macro-error", f"a macro cannot use {operation!r}; do that where the macro is used")
        if operation in self.permitted:
            self.give(None)
        else:
            self.waiting = Call(operation, {})

    def charge(self, *, steps: int = 0, size: int = 0) -> None:
        """Account for work and memory before they are taken. Raises Crowded where memory must be looked at first."""
        if size and not self.meter.has_room(size):
            if self.meter.is_measured:
                raise LimitReached(
                    "memory_bytes", f"the run needs more than {self.meter.limits.memory_bytes:} bytes"
                )
            raise Crowded
        self.meter.steps += steps
        self.meter.new_bytes += size
        if self.context.budget is not None:
            self.context.budget.settle("steps", steps)

    # Answers and faults

    def answer(self, answer: Answer) -> None:
        """Go on with the host's answer to the call that waits."""
        call = self.waiting
        assert call is not None, "only a waiting call is answered"
        self.waiting = None
        try:
            self.give(self._returned(call, answer))
        except Fault as fault:
            self.fail(fault)

    def _returned(self, call: Call, answer: Answer) -> Datum:
        """The value of an answer; one that is none is a fault of the program that asked."""
        match answer:
            case Returned():
                if call.operation in LANGUAGE:
                    self.permitted.add(call.operation)
                return from_json(answer.value, self.meter)
            case Refused():
                message = f"{call.operation} was refused: {answer.reason} (rule: {answer.rule})"
                raise Fault("policy-violation", message)
            case Failed():
                raise Fault(answer.error, f"{call.operation} failed: {answer.reason}")
            case Parked():
                raise AssertionError("a parked call has no answer yet")
        assert_never(answer)

    def fail(self, fault: Fault) -> None:
        """Go on at the innermost `try`; where there is none, the fault ends the run."""
        self.control = None
        locate(self, fault)
        if not unwind_to_try(self, fault):
            raise fault
