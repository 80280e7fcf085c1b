"""The Lisp machine: a stack of values, a stack of continuations, and nothing on Python's stack.

It runs a number of steps and stops, so that its owner can check the clock, run others, answer its calls, or save it. Below
it is the interpreter loop; above it, the guest.
"""

from typing import Literal, assert_never

from holdfast.core import Amount, Answer, Failed, Parked, Refused, Returned
from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.errors import LispError, MemoryCheckNeeded
from holdfast.guests.lisp.host_calls import LANGUAGE, ROUND
from holdfast.guests.lisp.json_bridge import from_json
from holdfast.guests.lisp.lang.expander import expand, is_macro_definition
from holdfast.guests.lisp.vm.compiler import HALTED
from holdfast.guests.lisp.vm.environment import Closure, Root, Template
from holdfast.guests.lisp.vm.interpreter import locate, run_steps, unwind_to_budget, unwind_to_try
from holdfast.guests.lisp.vm.limits import BudgetExhausted
from holdfast.guests.lisp.vm.memory_use import measure
from holdfast.guests.lisp.vm.registers import HostCall, Registers
from holdfast.guests.lisp.vm.state import Context

Progress = Literal["running", "memory-check", "waiting", "done"]
"""Why the machine stopped: it can continue, memory must be measured, it waits for an answer, or the program has ended."""

MAX_MACRO_STEPS = 200_000
"""Steps for all macros in one form. Expansion cannot be interrupted, and this takes some hundredths of a second."""
_STEPS_PER_MACRO = 100
"""The extra cost of each use, so that a macro that expands to itself ends."""


class Machine(Registers):
    """One run of a program."""

    def load(self, forms: list[Datum]) -> None:
        """Load a program. Raises LispSyntaxError before anything runs."""
        self.forms = forms[::-1]
        self._prepare_next()
        self.stack.append(None)  # the value of a program without forms

    def prepare(self, form: Datum, root: Root) -> Template:
        return Template(expand(form, root, _MacroExpander(self)), (), root)

    def advance(self, steps: int) -> Progress:
        """Run about this many steps. Raises LispError if the program does not catch it, and LimitReached."""
        end = self.meter.steps + steps
        while self.meter.steps < end:
            if self.pending_call is not None:
                return "waiting"
            if self.meter.needs_memory_check:
                return "memory-check"
            try:
                if self.control is not None:
                    if not self._run_control():
                        return "memory-check"
                elif run_steps(self, self._allowance(end - self.meter.steps)) and not self._next_form():
                    return "done"
            except LispError as error:
                self.fail(error)
            except OverflowError:
                self.fail(LispError("number-overflow", "the result is too large"))
            except BudgetExhausted as exhausted:
                self.control = None
                unwind_to_budget(self, exhausted)
        return "waiting" if self.pending_call is not None else "running"

    def resume_with(self, answer: Answer) -> None:
        """Continue with the host's answer to the pending call."""
        call = self.pending_call
        assert call is not None, "there is no pending call to answer"
        self.pending_call = None
        try:
            self.return_value(self._returned(call, answer))
        except LispError as error:
            self.fail(error)

    def fail(self, error: LispError) -> None:
        """Continue at the innermost `try`; if there is none, the error ends the run."""
        self.control = None
        locate(self, error)
        if not unwind_to_try(self, error):
            raise error

    def count_seconds(self, *, own: float, wall: float) -> None:
        """Count the CPU time and the elapsed time since the last count."""
        if self.context.budget is not None:
            self.context.budget.charge("time", own)
        self.meter.count_seconds(own=own, wall=wall)

    def _prepare_next(self) -> None:
        """Expand the next forms, up to one that may change the meaning of later ones, or until macros used their steps."""
        ready = []
        end = self.meter.steps + MAX_MACRO_STEPS
        while self.forms and self.meter.steps < end:
            form = self.forms.pop()
            ready.append(self.prepare(form, self.state.root))
            if is_macro_definition(form):
                break
        self.prepared = ready[::-1]

    def _next_form(self) -> bool:
        """Start the next form of the program; False if there is none."""
        if not self.prepared:
            self._prepare_next()
        if not self.prepared:
            return False
        self.template, self.pc, self.frame = self.prepared.pop(), 0, None
        self.continuation.append((HALTED, 0, None, self.context))
        return True

    def _allowance(self, wanted: int) -> int:
        """How many of the wanted steps the limits and budgets permit."""
        wanted = self.meter.available_steps(wanted)
        budget = self.context.budget
        if budget is None:
            return wanted
        exhausted = budget.exhausted()
        if exhausted is not None:
            raise BudgetExhausted(*exhausted)
        room = budget.remaining("steps")
        return wanted if room is None else min(wanted, int(room) or 1)

    def _run_control(self) -> bool:
        """Run the next control procedure. False if memory must be measured first; it then stays next."""
        assert self.control is not None
        control, arguments = self.control
        self.control = None
        self.meter.count_steps(1)
        control.check(len(arguments))
        try:
            control.function(self, arguments)
        except MemoryCheckNeeded:
            self.control = (control, arguments)
            return False
        self.meter.is_measured = False
        return True

    def _charge(self, amount: Amount) -> None:
        """Charge the tokens and cost of a call to the budgets around it; an unknown cost counts as 0."""
        if self.context.budget is not None:
            self.context.budget.charge("tokens", amount.tokens)
            self.context.budget.charge("cost", float(amount.cost_usd or 0))

    def _returned(self, call: HostCall, answer: Answer) -> Datum:
        """The value of an answer. A refusal or a failure raises a LispError in the program."""
        match answer:
            case Returned():
                if call.operation in LANGUAGE:
                    self.permitted.add(call.operation)
                self._charge(answer.amount)
                if call.operation == ROUND:
                    return True
                return from_json(answer.value, self.meter, is_base64=call.is_base64)
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


class _MacroExpander:
    """Runs the macros of one form within one allowance of steps. A macro cannot call the host, so it never waits."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._left = MAX_MACRO_STEPS

    def __call__(self, macro: Closure, arguments: list[Datum]) -> Datum:
        """Expand one use of a macro."""
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
            if progress == "memory-check":
                measure(outer, inner)
        raise LispError("macro-error", f"the macros of one form took more than {MAX_MACRO_STEPS} steps")
