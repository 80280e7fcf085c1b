"""The effects of programs: what a command changed in its sandbox, judged path by path before it reaches the workspace.

Each effect is judged as the call that would have made it, `world.write` or `world.delete`, by the same rules and grants:

- allow: written to the workspace
- stage: staged as a proposal
- escalate: staged as a proposal that a person must approve by name before it can be committed
- deny: dropped, and reported with the rule

The verdicts are on disk before the first effect is applied. Nothing else writes what a program changed.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from holdfast.core import (
    Amount,
    Call,
    CallId,
    Change,
    Decision,
    FileEffect,
    JudgedEffect,
    SettledEffects,
    digest_bytes,
    strictest,
)
from holdfast.core.errors import BudgetExceeded, CommandError, HoldfastError
from holdfast.core.events import EffectsJudged
from holdfast.gate.budget import Budget, Reservation
from holdfast.gate.grants import Grants
from holdfast.gate.judge import Judge
from holdfast.gate.refusals import deny
from holdfast.store import Journal

MAX_EFFECTS = 5_000
"""More changed files than this in one command become proposals that ask, whatever the policy allows."""

ReadChanged = Callable[[str], bytes]
"""Loads the content of a changed file from the sandbox. Raises CommandError."""
StoreBlob = Callable[[bytes], Awaitable[str]]
"""Stores a blob and returns its SHA-256."""


class EffectTarget(Protocol):
    """Applies one effect to the workspace, or stages it. The world implements it."""

    def apply(
        self, effect: FileEffect, read: Callable[[], bytes], *, is_staged: bool, asks: str = ""
    ) -> tuple[Change, ...]:
        """Write or stage one effect. Raises PathRefused, QuotaExceeded or OSError, and then nothing is changed."""
        ...


class Effects:
    """Judges, records and applies the effects of commands."""

    def __init__(
        self,
        *,
        journal: Journal,
        judge: Judge,
        grants: Grants,
        budget: Budget,
        writer: EffectTarget,
        keep: StoreBlob,
    ) -> None:
        self._journal = journal
        self._judge = judge
        self._grants = grants
        self._budget = budget
        self._writer = writer
        self._keep = keep
        self._reserved: dict[CallId, Reservation] = {}

    async def settle(
        self, call: Call, effects: Sequence[FileEffect], read: ReadChanged, *, is_staged: bool
    ) -> SettledEffects:
        """Judge the effects of a command, record the verdicts, and apply what may be applied.

        With `is_staged` the command itself was only allowed to stage, so what its effects may write is staged too.
        """
        if not effects:
            return SettledEffects()
        judged = [(effect, await self._decide(call, effect, len(effects))) for effect in effects]
        if is_staged:
            judged = [
                (effect, msgspec.structs.replace(each, verdict="stage") if each.verdict == "allow" else each)
                for effect, each in judged
            ]
        judged = self._within_budget(call, judged)
        judged = [await self._keep_staged(effect, decision, read) for effect, decision in judged]
        verdicts = tuple(_judged(effect, decision) for effect, decision in judged)
        await self._journal.append(EffectsJudged(call=call.id, effects=verdicts))
        return self._apply(judged, read)

    async def judge(self, call: Call, effects: Sequence[FileEffect]) -> tuple[JudgedEffect, ...]:
        """Judge changes that are not made here, such as those of commits."""
        decided = [(effect, await self._decide(call, effect, 1)) for effect in effects]
        return tuple(_judged(effect, decision) for effect, decision in decided)

    def release(self, call: CallId) -> None:
        """Release what was reserved for the effects of a call, once its outcome is recorded."""
        reservation = self._reserved.pop(call, None)
        if reservation is not None:
            self._budget.release(reservation)

    async def _decide(self, call: Call, effect: FileEffect, count: int) -> Decision:
        judgement = await self._judge.judge_effect(call, effect)
        decision = judgement.decision
        if decision.verdict == "escalate":
            grant = self._grants.find_covering(judgement.request)
            # A grant that counts its uses was given for calls, and a command may change a file many times.
            if grant is not None and grant.uses_left is None:
                decision = msgspec.structs.replace(
                    decision, verdict="stage" if decision.is_staged else "allow"
                )
        if count > MAX_EFFECTS:
            reason = f"the command changed {count:,} files"
            decision = strictest(
                [decision, Decision(verdict="escalate", rule="many-files", reason=reason, source="gate")]
            )
        return decision

    def _within_budget(
        self, call: Call, judged: list[tuple[FileEffect, Decision]]
    ) -> list[tuple[FileEffect, Decision]]:
        """The verdicts, all of them denials if the budget cannot pay for what would be written."""
        size = sum(effect.size for effect, decision in judged if decision.verdict != "deny")
        try:
            self._reserved[call.id] = self._budget.reserve(Amount(bytes_written=size))
        except BudgetExceeded as error:
            refused = deny("budget", f"{error}; nothing that the command changed was kept")
            return [
                (effect, decision if decision.verdict == "deny" else refused) for effect, decision in judged
            ]
        return judged

    async def _keep_staged(
        self, effect: FileEffect, decision: Decision, read: ReadChanged
    ) -> tuple[FileEffect, Decision]:
        """Store the content of an effect that will be staged, so that a restart can rebuild what is staged."""
        if effect.kind == "deleted" or decision.verdict == "deny":
            return effect, decision
        try:
            # Every content is kept, also what is written: a file with a staged change is changed in the overlay.
            stored = await self._keep(_content(effect, read))
        except CommandError as error:
            return effect, deny("not-stable", str(error))
        assert stored == effect.digest
        return effect, decision

    def _apply(self, judged: Sequence[tuple[FileEffect, Decision]], read: ReadChanged) -> SettledEffects:
        """Apply the effects, without an await: a cancelled call has applied all of them or none."""
        changes: list[Change] = []
        failed: dict[str, Decision] = {}
        written = 0
        # Deletions first, the deepest first, so that a file can take the place of a folder and a folder that of a file.
        order = sorted(judged, key=lambda each: (each[0].kind != "deleted", _depth_order(each[0])))
        for effect, decision in order:
            if decision.verdict == "deny":
                continue
            try:
                changes += self._apply_one(effect, decision, read)
                written += effect.size
            except (HoldfastError, OSError) as problem:
                failed[effect.path] = deny("not-written", str(problem))
        verdicts = tuple(_judged(effect, failed.get(effect.path, decision)) for effect, decision in judged)
        return SettledEffects(judged=verdicts, changes=tuple(changes), bytes_written=written)

    def _apply_one(self, effect: FileEffect, decision: Decision, read: ReadChanged) -> tuple[Change, ...]:
        is_asking = decision.verdict == "escalate"
        return self._writer.apply(
            effect,
            lambda: _content(effect, read),
            is_staged=is_asking or decision.requires_staging,
            asks=f"{decision.reason} (rule {decision.rule})" if is_asking else "",
        )


def _content(effect: FileEffect, read: ReadChanged) -> bytes:
    """The content that was judged. Raises CommandError if the file is another one by now."""
    content = read(effect.path)
    if digest_bytes(content) != effect.digest:
        raise CommandError(f"{effect.path!r} changed while it was read")
    return content


def _depth_order(effect: FileEffect) -> tuple[int, str]:
    depth = effect.path.count("/")
    return (-depth if effect.kind == "deleted" else depth), effect.path


def _judged(effect: FileEffect, decision: Decision) -> JudgedEffect:
    return JudgedEffect(effect=effect, verdict=decision.verdict, rule=decision.rule, reason=decision.reason)
