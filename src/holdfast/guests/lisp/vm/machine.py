"""The machine that runs Lisp: a stack of values, a stack of what is to be done next, and nothing on the host's stack.

It runs some steps and stops, so that its owner can look at the clock, serve others, answer its calls, or save it.
Below it lie the instructions; above it, the guest.
"""

from typing import Literal, assert_never

from holdfast.core import Amount, Answer, Failed, Parked, Refused, Returned
from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.errors import Crowded, LispError
from holdfast.guests.lisp.host_calls import LANGUAGE, ROUND
from holdfast.guests.lisp.json_bridge import from_json
from holdfast.guests.lisp.lang.expander import expand, is_macro_definition
from holdfast.guests.lisp.vm.compiler import HALTED
from holdfast.guests.lisp.vm.environment import Closure, Root, Template
from holdfast.guests.lisp.vm.interpreter import locate, run_steps, unwind_to_budget, unwind_to_try
from holdfast.guests.lisp.vm.limits import BudgetSpent
from holdfast.guests.lisp.vm.memory_use import measure
from holdfast.guests.lisp.vm.registers import Call, Registers
from holdfast.guests.lisp.vm.state import Context

Progress = Literal["working", "crowded", "waiting", "done"]
"""Why the machine stopped: it can go on, memory must be looked at, it waits for an answer, or the program has ended."""

MAX_MACRO_STEPS = 200_000
"""Of all macros in one form: expanding is not interruptible, and this takes some hundredths of a second."""
_STEPS_PER_MACRO = 100
"""What each use costs beside the macro's own steps, so that one that expands to itself comes to an end."""


class Machine(Registers):
    """One run of a program."""

    def load(self, forms: list[Datum]) -> None:
        """Take up a program. Raises Malformed where it is none, before anything of it runs."""
        self.forms = forms[::-1]
        self._prepare_next()
        self.stack.append(None)  # the value of no form at all, which is where every program begins

    def prepare(self, form: Datum, root: Root) -> Template:
        return Template(expand(form, root, _Macros(self)), (), root)

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
            except LispError as fault:
                self.fail(fault)
            except OverflowError:
                self.fail(LispError("number-overflow", "the result is too large a number"))
            except BudgetSpent as spent:
                self.control = None
                unwind_to_budget(self, spent)
        return "waiting" if self.waiting is not None else "working"

    def answer(self, answer: Answer) -> None:
        """Go on with the host's answer to the call that waits."""
        call = self.waiting
        assert call is not None, "only a waiting call is answered"
        self.waiting = None
        try:
            self.give(self._returned(call, answer))
        except LispError as fault:
            self.fail(fault)

    def fail(self, fault: LispError) -> None:
        """Go on at the innermost `try`; where there is none, the fault ends the run."""
        self.control = None
        locate(self, fault)
        if not unwind_to_try(self, fault):
            raise fault

    def count_seconds(self, *, own: float, wall: float) -> None:
        """Time that the run itself took since the last count, and time that went by."""
        if self.context.budget is not None:
            self.context.budget.settle("time", own)
        self.meter.count_seconds(own=own, wall=wall)

    def _prepare_next(self) -> None:
        """Expand the forms to come, up to one that may change what the others mean, or until macros took their time."""
        ready = []
        end = self.meter.steps + MAX_MACRO_STEPS
        while self.forms and self.meter.steps < end:
            form = self.forms.pop()
            ready.append(self.prepare(form, self.state.root))
            if is_macro_definition(form):
                break
        self.prepared = ready[::-1]

    def _next_form(self) -> bool:
        """Begin the next form of the program, if there is one."""
        if not self.prepared:
            self._prepare_next()
        if not self.prepared:
            return False
        self.template, self.pc, self.frame = self.prepared.pop(), 0, None
        self.continuation.append((HALTED, 0, None, self.context))
        return True

    def _allowance(self, wanted: int) -> int:
        """How many of the wanted steps the limits and budgets leave."""
        wanted = self.meter.room_for_steps(wanted)
        budget = self.context.budget
        if budget is None:
            return wanted
        exhausted = budget.exhausted()
        if exhausted is not None:
            raise BudgetSpent(*exhausted)
        room = budget.room("steps")
        return wanted if room is None else min(wanted, int(room) or 1)

    def _run_control(self) -> bool:
        """Run the control procedure that is next. False where memory has to be looked at first; then it is still next."""
        assert self.control is not None
        control, arguments = self.control
        self.control = None
        self.meter.count_steps(1)
        control.check(len(arguments))
        try:
            control.function(self, arguments)
        except Crowded:
            self.control = (control, arguments)
            return False
        self.meter.is_measured = False
        return True

    def _charge(self, amount: Amount) -> None:
        """What a call spent of a model, to the budgets around it; a price that nobody knows is not counted."""
        if self.context.budget is not None:
            self.context.budget.settle("tokens", amount.tokens)
            self.context.budget.settle("cost", float(amount.cost_usd or 0))

    def _returned(self, call: Call, answer: Answer) -> Datum:
        """The value of an answer; one that is none is a fault of the program that asked."""
        match answer:
            case Returned():
                if call.operation in LANGUAGE:
                    self.permitted.add(call.operation)
                self._charge(answer.amount)
                return True if call.operation == ROUND else from_json(answer.value, self.meter)
            case Refused() if call.operation == ROUND and answer.exhausted is not None:
                return False
            case Refused():
                message = f"{call.operation} was refused: {answer.reason} (rule: {answer.rule})"
                raise LispError("policy-violation", message)
            case Failed():
                raise LispError(answer.error, f"{call.operation} failed: {answer.reason}")
            case Parked():
                raise AssertionError("a parked call has no answer yet")
        assert_never(answer)


class _Macros:
    """Runs the macros of one form, within one allowance of steps. A macro cannot ask the host, so nothing has to wait."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._left = MAX_MACRO_STEPS

    def __call__(self, macro: Closure, arguments: list[Datum]) -> Datum:
        """What a use of the macro expands to."""
        outer, meter = self._machine, self._machine.meter
        inner = Machine(
            outer.state, meter, operations={}, seed=outer.random_state, now_ms=outer.now_ms, is_pure=True
        )
        inner.context = Context(outer.context.root, outer.context.facts)
        inner.continuation.append((HALTED, 0, None, inner.context))
        inner.enter(macro, arguments)
        self._left -= _STEPS_PER_MACRO
        while self._left > 0:
            before = meter.steps
            progress = inner.advance(self._left)
            self._left -= meter.steps - before
            if progress == "done":
                return inner.value
            if progress == "crowded":
                measure(outer, inner)
        raise LispError("macro-error", f"the macros of one form took more than {MAX_MACRO_STEPS} steps")
