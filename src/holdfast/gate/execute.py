"""Carrying out a call that was cleared: whatever happens becomes an event, and what is made is what was judged."""

import asyncio

import msgspec

from holdfast.core import Amount, CallStatus, Clock, Paths, Performed
from holdfast.core.errors import HoldfastError, ToolFailed, ToolTimeout
from holdfast.core.events import CallSettled
from holdfast.gate.authorize import Authorized
from holdfast.gate.deadlines import DeadlineExceeded, DeadlineWatcher
from holdfast.gate.judge import Judge
from holdfast.gate.output_filter import OutputFilter
from holdfast.policy import hide_unreadable_paths
from holdfast.store import Journal


class Executor:
    """Hands a cleared call to its tool. What cannot be counted is charged as it was reserved."""

    def __init__(
        self,
        *,
        journal: Journal,
        judge: Judge,
        paths: Paths,
        clock: Clock,
        results: OutputFilter,
        call_seconds: float,
    ) -> None:
        self._journal = journal
        self._judge = judge
        self._paths = paths
        self._clock = clock
        self._results = results
        self._patience = DeadlineWatcher(call_seconds)

    async def of(self, cleared: Authorized, reserved: Amount) -> CallSettled:
        """Carry it out. Cancelled, it is on record as that before the cancellation goes on."""
        call = cleared.call
        begun = self._clock.monotonic()
        performed: Performed | None = None
        result, error = None, ""
        status: CallStatus = "ok"
        try:
            performed = await self._patience.wait(self._dispatch(cleared))
            seen = hide_unreadable_paths(call.operation, performed.result, self._judge.policy, self._paths)
            result = self._results.clean(seen)
        except (DeadlineExceeded, ToolTimeout):
            status, error = "timeout", f"no answer within {self._patience.seconds:g} seconds"
            performed = Performed(amount=at_most(reserved))
        except asyncio.CancelledError:
            settled = CallSettled(
                call=call.id, status="cancelled", error="the turn was cancelled", amount=at_most(reserved)
            )
            await asyncio.shield(self._journal.append(settled))
            raise
        except (HoldfastError, OSError, ValueError) as problem:
            status, error = "error", f"{type(problem).__name__}: {problem}"
            if isinstance(problem, ToolFailed) and problem.usage is not None:
                performed = Performed(amount=Amount.of(problem.usage))
        except Exception as problem:
            # A toolset that breaks is the toolset's failure; its text may hold anything, so only its kind is told.
            status, error = "error", f"ToolFailed: the tool broke ({type(problem).__name__})"
            performed = performed or Performed(amount=at_most(reserved))
        performed = performed or Performed()
        return CallSettled(
            call=call.id,
            status=status,
            result=result,
            error=self._results.tell(error) if error else "",
            amount=performed.amount,
            changes=performed.changes,
            duration_ms=round((self._clock.monotonic() - begun) * 1000, 3),
        )

    async def _dispatch(self, cleared: Authorized) -> Performed:
        """Hand the very call that was judged to the very tool that was judged."""
        decision = cleared.decision
        # Writing the intent took time, and arguments, policy, tools and links may be changed by others meanwhile.
        drift = self._judge.changed_since_judged(
            cleared.call,
            cleared.offer,
            cleared.digest,
            cleared.targets,
            policy_digest=cleared.policy_digest,
        )
        if drift:
            raise ToolFailed(drift)
        # An approved escalation stays a proposal where another rule or tier said so.
        is_staged = decision.verdict == "stage" or decision.is_staged
        return await cleared.offer.toolset.perform(cleared.call, is_staged=is_staged)


def at_most(reserved: Amount) -> Amount:
    """A reservation as something to charge; a settled call counts itself."""
    return msgspec.structs.replace(reserved, calls=0)
