"""The effects of programs: what a command changed in its sandbox, judged path by path before it reaches the workspace.

Each effect is judged as the call that would have made it, `world.write` or `world.delete`, by the same rules and grants:

- allow: written to the workspace
- stage: staged as a proposal
- escalate: staged as a proposal that a person must approve by name before it can be committed
- deny: dropped, and reported with the rule

The verdicts are on disk before the first effect is applied. Nothing else writes what a program changed.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

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

SLICE_EFFECTS = 20
"""How many effects are handled before other sessions get their turn on the event loop."""

BATCH_BYTES = 16 << 20
"""Contents of effects that are held in memory until the store has them."""

Item = TypeVar("Item")
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

    def prune(self) -> None:
        """Remove the folders that the deletions applied so far left empty."""
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
        self._reserved: defaultdict[CallId, list[Reservation]] = defaultdict(list)
        self._applied: defaultdict[CallId, list[Change]] = defaultdict(list)

    async def settle(
        self, call: Call, effects: Sequence[FileEffect], read: ReadChanged, *, is_staged: bool
    ) -> SettledEffects:
        """Judge the effects of a command, record the verdicts, and apply what may be applied.

        With `is_staged` the command itself was only allowed to stage, so what its effects may write is staged too.
        """
        if not effects:
            return SettledEffects()
        judged = await self._decide_all(call, effects, len(effects))
        if is_staged:
            judged = [
                (effect, msgspec.structs.replace(each, verdict="stage") if each.verdict == "allow" else each)
                for effect, each in judged
            ]
        judged = await self._within_budget(call, judged)
        judged = await self._keep_all(judged, read)
        verdicts = tuple(_judged(effect, decision) for effect, decision in judged)
        await self._journal.append(EffectsJudged(call=call.id, effects=verdicts))
        applying = asyncio.create_task(self._apply(call.id, judged, read))
        try:
            return await asyncio.shield(applying)
        except asyncio.CancelledError:
            await _wait(applying)  # a cancelled call has applied all of its effects or none
            raise

    def applied(self, call: CallId) -> tuple[Change, ...]:
        """What was applied for a call so far: part of its record even if it ends with an error."""
        return tuple(self._applied.get(call, ()))

    async def judge(self, call: Call, effects: Sequence[FileEffect]) -> tuple[JudgedEffect, ...]:
        """Judge changes that are not made here, such as those of commits."""
        decided = await self._decide_all(call, effects, 1)
        return tuple(_judged(effect, decision) for effect, decision in decided)

    def release(self, call: CallId) -> None:
        """Release what was reserved for the effects of a call, once its outcome is recorded."""
        self._applied.pop(call, None)
        for reservation in self._reserved.pop(call, ()):
            self._budget.release(reservation)

    async def _decide_all(
        self, call: Call, effects: Sequence[FileEffect], count: int
    ) -> list[tuple[FileEffect, Decision]]:
        decided: list[tuple[FileEffect, Decision]] = []
        for part in _slices(effects):
            decided += [(effect, await self._decide(call, effect, count)) for effect in part]
            await asyncio.sleep(0)
        return decided

    async def _decide(self, call: Call, effect: FileEffect, count: int) -> Decision:
        judgement = await self._judge.judge_effect(call, effect)
        decision = judgement.decision
        if decision.verdict == "escalate":
            grant = await self._grants.find_covering(judgement.request)
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

    async def _within_budget(
        self, call: Call, judged: list[tuple[FileEffect, Decision]]
    ) -> list[tuple[FileEffect, Decision]]:
        """The verdicts, all of them denials if the budget cannot pay for what would be written."""
        size = sum(effect.size for effect, decision in judged if decision.verdict != "deny")
        try:
            self._reserved[call.id].append(await self._budget.reserve(Amount(bytes_written=size)))
        except BudgetExceeded as error:
            refused = deny("budget", f"{error}; nothing that the command changed was kept")
            return [
                (effect, decision if decision.verdict == "deny" else refused) for effect, decision in judged
            ]
        return judged

    async def _keep_all(
        self, judged: Sequence[tuple[FileEffect, Decision]], read: ReadChanged
    ) -> list[tuple[FileEffect, Decision]]:
        kept: list[tuple[FileEffect, Decision]] = []
        for batch in _batches(judged):
            keeping: list[asyncio.Task[tuple[FileEffect, Decision]]] = []
            try:
                for part in _slices(batch):
                    keeping += [asyncio.create_task(self._keep_staged(*each, read)) for each in part]
                    await asyncio.sleep(0)
                # Together, because the store writes what arrives together in one transaction.
                kept += await asyncio.gather(*keeping)
            finally:
                for each in keeping:
                    each.cancel()
        return kept

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

    async def _apply(
        self, call: CallId, judged: Sequence[tuple[FileEffect, Decision]], read: ReadChanged
    ) -> SettledEffects:
        """Apply the effects, in slices on the event loop, because the overlay is not for several threads."""
        before = len(self._applied[call])
        deletions = [each for each in judged if each[0].kind == "deleted"]
        others = [each for each in judged if each[0].kind != "deleted"]
        # Deletions first, the deepest first, so that a file can take the place of a folder and a folder that of a file.
        failed = await self._apply_in_order(call, deletions, read)
        self._writer.prune()
        failed |= await self._apply_in_order(call, others, read)
        final = [(effect, failed.get(effect.path, decision)) for effect, decision in judged]
        return SettledEffects(
            judged=tuple(_judged(effect, decision) for effect, decision in final),
            changes=tuple(self._applied[call][before:]),
            bytes_written=sum(effect.size for effect, decision in final if decision.verdict != "deny"),
        )

    async def _apply_in_order(
        self, call: CallId, judged: Sequence[tuple[FileEffect, Decision]], read: ReadChanged
    ) -> dict[str, Decision]:
        """Apply what may be applied. Returns the paths that could not be changed, with the reason."""
        failed: dict[str, Decision] = {}
        for part in _slices(sorted(judged, key=lambda each: _depth_order(each[0]))):
            for effect, decision in part:
                try:
                    if decision.verdict != "deny":
                        self._applied[call] += self._apply_one(effect, decision, read)
                except (HoldfastError, OSError) as problem:
                    failed[effect.path] = deny("not-written", str(problem))
            await asyncio.sleep(0)
        return failed

    def _apply_one(self, effect: FileEffect, decision: Decision, read: ReadChanged) -> tuple[Change, ...]:
        is_asking = decision.verdict == "escalate"
        return self._writer.apply(
            effect,
            lambda: _content(effect, read),
            is_staged=is_asking or decision.requires_staging,
            asks=f"{decision.reason} (rule {decision.rule})" if is_asking else "",
        )


async def _wait(task: asyncio.Task[SettledEffects]) -> None:
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])


def _slices(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), SLICE_EFFECTS):
        yield items[start : start + SLICE_EFFECTS]


def _batches(
    judged: Sequence[tuple[FileEffect, Decision]],
) -> Iterator[Sequence[tuple[FileEffect, Decision]]]:
    """The effects in batches whose contents fit in memory."""
    start, held = 0, 0
    for number, (effect, _) in enumerate(judged):
        if held + effect.size > BATCH_BYTES:
            yield judged[start:number]
            start, held = number, 0
        held += effect.size
    yield judged[start:]


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
