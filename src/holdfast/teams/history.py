"""The history of a pair, projected from its journal: messages, answers, and the conversation of its agent."""

from holdfast.core import Amount, Principal, Usage, is_success, pluralize
from holdfast.core.events import (
    HistoryCompacted,
    MemberAttached,
    MessagePosted,
    ModelFailed,
    ModelReplied,
    Noted,
    RecordedEvent,
    SessionPaused,
    SessionResumed,
    TurnEnded,
)
from holdfast.core.projection import Projection
from holdfast.teams.contract import TeamMessage, TeamReply
from holdfast.teams.message_text import extract_message

CHARACTERS_A_TOKEN = 3
"""Fewer than most texts have, so that an estimate is not too low."""


class HistoryTurn:
    """One message and what has come of it so far."""

    def __init__(self, event: MessagePosted, at_ms: int) -> None:
        self.turn = event.turn
        self.at_ms = at_ms
        self.text = extract_message(event.text)
        self.principal: Principal = event.principal
        self.message_id = event.message
        self.answer = ""
        self.usage = Usage()
        self.ended: TurnEnded | None = None
        self.notes: tuple[str, ...] = ()
        """What happened to the conversation before this message."""


_Handled = (
    MessagePosted
    | ModelReplied
    | ModelFailed
    | TurnEnded
    | MemberAttached
    | HistoryCompacted
    | Noted
    | SessionPaused
    | SessionResumed
)


class PairHistory(Projection[_Handled]):
    """Every message of a pair, by position and by message id."""

    def reset(self) -> None:
        self.turns: list[HistoryTurn] = []
        self.attached: MemberAttached | None = None
        self.is_archived = False
        self.turns_since_attached = 0
        self.answers_since_attached = 0
        self.summaries = 0
        """How often the conversation was summarised."""
        self._summary: HistoryCompacted | None = None
        self._notes: list[str] = []
        self._by_message_id: dict[str, HistoryTurn] = {}

    def apply(self, event: _Handled, entry: RecordedEvent) -> None:
        match event:
            case MessagePosted():
                posted = HistoryTurn(event, entry.at_ms)
                posted.notes, self._notes = tuple(self._notes), []
                self.turns.append(posted)
                if event.message:
                    self._by_message_id[event.message] = posted
            case ModelReplied() if self.turns:
                self.turns[-1].answer = event.message.text or self.turns[-1].answer
                self.turns[-1].usage = _sum(self.turns[-1].usage, event.usage)
            case ModelFailed() if self.turns:
                self.turns[-1].usage = _sum(self.turns[-1].usage, event.usage)
            case TurnEnded() if self.turns:
                self.turns[-1].ended = event
                self.turns_since_attached += 1
                self.answers_since_attached += is_success(event.outcome)
            case MemberAttached():
                if event.generation > self.generation:
                    self._notes.append("the agent lost its memory and was briefed from our record")
                self.attached, self.turns_since_attached, self.answers_since_attached = event, 0, 0
            case HistoryCompacted():
                self._summary = event
                self.summaries += 1
                self._notes.append("the conversation so far was summarised; its messages stay on record")
                if self.turns:
                    self.turns[-1].usage = _sum(self.turns[-1].usage, event.usage)
            case Noted(code="imported"):
                self.attached = None  # a file does not choose a conversation on this machine
            case Noted(code="compacted"):
                self.summaries += 1
                self._notes.append(event.text)
            case SessionPaused():
                self.is_archived = True
            case SessionResumed():
                self.is_archived = False
            case _:
                pass

    @property
    def generation(self) -> int:
        """How often the agent's conversation was created; above 1, the agent lost its memory."""
        return self.attached.generation if self.attached is not None else 1

    @property
    def interrupted(self) -> HistoryTurn | None:
        """The last message, if a crash left it without an end."""
        return self.turns[-1] if self.turns and self.turns[-1].ended is None else None

    def briefing(self, *, max_characters: int = 20_000) -> str:
        """What was said so far, as text for an agent without memory of it; the latest messages if it is long."""
        lines: list[str] = []
        length = 0
        summary, through = (self._summary.summary, self._summary.through) if self._summary else ("", 0)
        ended = [turn for turn in self.turns if turn.ended is not None and turn.turn > through]
        for turn in reversed(ended):
            line = f"Message: {turn.text}\nYour answer: {turn.answer or '(none)'}"
            length += len(line)
            if lines and length > max_characters:
                break
            lines.append(line[:max_characters])
        omitted = len(ended) - len(lines)
        if omitted:
            lines.append(f"({pluralize(omitted, 'earlier message')} left out)")
        if summary:
            lines.append(f"Summary of what was said before: {summary}")
        return "\n\n".join(reversed(lines))

    @property
    def estimated_tokens(self) -> int:
        """About how many tokens the agent's conversation has, by the texts of its messages and answers."""
        recent = self.turns[len(self.turns) - self.turns_since_attached :]
        return sum(len(turn.text) + len(turn.answer) for turn in recent) // CHARACTERS_A_TOKEN

    def reply_to(self, message: TeamMessage) -> TeamReply | None:
        """The recorded reply to a message; None if it has none yet."""
        posted = self._by_message_id.get(message.id)
        if posted is None or posted.ended is None:
            return None
        return TeamReply(
            outcome=posted.ended.outcome,
            text=posted.answer,
            usage=posted.usage,
            generation=self.generation,
            notes=("this message was already answered; this is the recorded answer",),
        )


def _sum(one: Usage, other: Usage) -> Usage:
    amount = Amount.of(one).plus(Amount.of(other)) if one != Usage() else Amount.of(other)
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        cost_usd=amount.cost_usd,
    )
