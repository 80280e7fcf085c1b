"""Executing an authorized call: every result becomes an event, and what is executed is exactly what was judged."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial

import msgspec

from holdfast.core import (
    Amount,
    CallId,
    CallStatus,
    Change,
    Clock,
    Json,
    Paths,
    Performed,
    TimeLimited,
    off_loop,
    outside_paths,
)
from holdfast.core.errors import HoldfastError, ToolFailed, ToolTimeout
from holdfast.core.events import CallSettled
from holdfast.gate.authorize import Authorized
from holdfast.gate.deadlines import DeadlineExceeded, DeadlineWatcher
from holdfast.gate.judge import Judge
from holdfast.gate.output_filter import OutputFilter
from holdfast.policy import hide_unreadable_paths
from holdfast.store import Journal


class Executor:
    """Passes an authorized call to its toolset. A cost that cannot be measured is charged as reserved."""

    def __init__(
        self,
        *,
        journal: Journal,
        judge: Judge,
        paths: Paths,
        clock: Clock,
        output_filter: OutputFilter,
        call_seconds: float,
        applied: Callable[[CallId], tuple[Change, ...]],
    ) -> None:
        """`applied` returns what the programs of a call have changed so far, which is recorded however the call ends."""
        self._journal = journal
        self._judge = judge
        self._paths = paths
        self._clock = clock
        self._output_filter = output_filter
        self._deadlines = DeadlineWatcher(call_seconds)
        self._applied = applied

    async def execute(self, authorized: Authorized, reserved: Amount) -> CallSettled:
        """Execute the call. A cancellation is recorded before it propagates."""
        call = authorized.call
        started = self._clock.monotonic()
        performed: Performed | None = None
        result, error = None, ""
        status: CallStatus = "ok"
        toolset = authorized.registered.toolset
        own_seconds = toolset.time_limit(call) if isinstance(toolset, TimeLimited) else None
        try:
            async with self._deadlines.limit(own_seconds):
                digest = await off_loop(call.arguments, lambda: call.digest)
                self._check_unchanged(authorized, digest)
                async with _open_outside_paths(authorized):
                    # An approved call is still staged if another rule or tier requires staging.
                    performed = await toolset.perform(call, is_staged=authorized.decision.requires_staging)
            readable = await self._readable(authorized, performed.result)
            result = await off_loop(readable, lambda: self._output_filter.filter_result(readable))
        except (DeadlineExceeded, ToolTimeout):
            status, error = "timeout", f"no answer within {own_seconds or self._deadlines.seconds:g} seconds"
            performed = Performed(amount=at_most(reserved))
        except asyncio.CancelledError:
            settled = CallSettled(
                call=call.id,
                status="cancelled",
                error="the turn was cancelled",
                amount=at_most(reserved),
                changes=self._applied(call.id),
            )
            await asyncio.shield(self._journal.append(settled))
            raise
        except (HoldfastError, OSError, ValueError) as problem:
            status, error = "error", f"{type(problem).__name__}: {problem}"
            if isinstance(problem, ToolFailed) and problem.usage is not None:
                performed = Performed(amount=Amount.of(problem.usage))
        except Exception as problem:
            # An unexpected exception is the toolset's fault. Its text may contain anything, so only its type is reported.
            status, error = "error", f"ToolFailed: the tool raised {type(problem).__name__}"
            performed = performed or Performed(amount=at_most(reserved))
        performed = performed or Performed()
        return CallSettled(
            call=call.id,
            status=status,
            result=result,
            error=self._output_filter.filter_error(error) if error else "",
            amount=performed.amount,
            changes=performed.changes or self._applied(call.id),
            duration_ms=round((self._clock.monotonic() - started) * 1000, 3),
        )

    async def _readable(self, authorized: Authorized, result: Json) -> Json:
        """The result without the files that the policy closes to this guest."""
        hide = partial(
            hide_unreadable_paths,
            authorized.call.operation,
            result,
            self._judge.policy,
            self._paths,
            is_approved=authorized.escalation is not None or authorized.grant is not None,
        )
        is_long = isinstance(result, list) and len(result) > _LONG_RESULT
        return await asyncio.to_thread(hide) if is_long else hide()

    def _check_unchanged(self, authorized: Authorized, digest: str) -> None:
        """Raise ToolFailed unless the call and its tool are exactly what was judged."""
        # Writing the intent takes time, and others may change arguments, policy, tools and symlinks meanwhile.
        change = self._judge.changed_since_judged(
            authorized.call.operation,
            digest,
            authorized.registered,
            authorized.digest,
            authorized.targets,
            policy_digest=authorized.policy_digest,
        )
        if change:
            raise ToolFailed(change)


_LONG_RESULT = 100
"""Items that are judged one by one on the event loop; more are judged in a thread."""


def _open_outside_paths(authorized: Authorized) -> AbstractAsyncContextManager[None]:
    """Open the paths outside the workspace that this call was authorized for."""
    opener, paths = authorized.registered.approved_paths, outside_paths(authorized.targets)
    if opener is None or not paths:
        return nullcontext()
    is_approved = authorized.escalation is not None or authorized.grant is not None
    return opener.opened(authorized.call, paths, is_approved=is_approved)


def at_most(reserved: Amount) -> Amount:
    """A reservation as an amount to charge. The settled call itself counts as one call."""
    return msgspec.structs.replace(reserved, calls=0)
