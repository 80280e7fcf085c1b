"""Tables of teams for people: the roster, the pairs, their messages and their statistics."""

from collections.abc import Sequence
from datetime import UTC, datetime

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console
from holdfast.core import Error, Outcome, Value, escape_invisible, is_success, pluralize
from holdfast.store import SessionSummary
from holdfast.teams import Pair, PairHistory, PairStats, Roster, TeamReply, TeamsStats

_WORDS = 60
_ID = 13
"""The length of a session id prefix that every command accepts."""
_LIFETIMES = {
    "hour": "within an hour",
    "day": "within a day",
    "week": "within a week",
    "month": "within 30 days",
    "longer": "longer",
}
NO_MESSAGES = "no messages yet; start with: holdfast teams ask TEAM QUESTION"


class LogLine(Value):
    """One message of a pair and its answer."""

    pair: str
    at_ms: int
    message: str
    text: str
    answer: str
    outcome: Outcome | None
    """None while it is being answered, or if a crash interrupted it."""
    seconds: float
    tokens: int
    notes: tuple[str, ...] = ()
    """What happened to the conversation before the message, such as that it was summarised."""


def log_lines(pair: Pair, history: PairHistory) -> list[LogLine]:
    """The messages of a pair, oldest first."""
    return [
        LogLine(
            pair=str(pair),
            at_ms=turn.at_ms,
            message=turn.message_id,
            text=turn.text,
            answer=turn.answer,
            outcome=turn.ended.outcome if turn.ended is not None else None,
            seconds=turn.ended.wall_seconds if turn.ended is not None else 0.0,
            tokens=turn.usage.input_tokens + turn.usage.output_tokens,
            notes=turn.notes,
        )
        for turn in history.turns
    ]


def show_roster(roster: Roster, console: Console) -> None:
    """List the teams."""
    for team in roster.teams.values():
        row = f"{team.name:<16} {team.member:<9} {team.project}  {escape_invisible(team.description)}"
        console.show(row.rstrip(), folds=True)


def show_pairs(lines: Sequence[SessionSummary], stats: TeamsStats, console: Console) -> None:
    """List every pair that has exchanged messages."""
    if not lines:
        console.say(NO_MESSAGES)
    summaries = {each.pair: each.summaries for each in stats.pairs}
    for line in lines:
        count = summaries.get(line.description, 0)
        facts = [f"summarised {count} times" if count > 1 else "summarised"] if count else []
        facts += ["archived"] if line.lifecycle == "paused" else []
        rest = f" ({', '.join(facts)})" if facts else ""
        amounts = f"{pluralize(line.turns, 'message'):>13} {line.tokens:>9,} tokens"
        console.print(f"{line.id[:_ID]} {amounts}  {line.description}{rest}")


def show_log(lines: Sequence[LogLine], console: Console) -> None:
    """Print one message per line with its answer below."""
    for line in lines:
        at = datetime.fromtimestamp(line.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        for note in line.notes:
            console.show(f"{at}  {line.pair}  -- {escape_invisible(note)}", folds=True)
        console.show(f"{at}  {line.pair}  {_short(line.text)}", folds=True)
        if isinstance(line.outcome, Error):
            console.show(f"{'':21}! {_short(line.outcome.code)}: {_short(line.outcome.message)}", folds=True)
        elif line.outcome is None:
            console.show(f"{'':21}… no answer")
        else:
            console.show(
                f"{'':21}> {_short(line.answer)}  ({line.seconds:.1f} s, {line.tokens:,} tokens)", folds=True
            )


def show_stats(stats: TeamsStats, console: Console) -> None:
    """Print the busiest pairs first and the totals last. The pair is the last column, because its width varies."""
    for pair in stats.damaged:
        console.say(f"note: the journal of {pair} is damaged and not counted", "ask", folds=True)
    console.print(
        f"{'messages':>8} {'failed':>6} {'tokens':>10} {'cost':>8} {'median s':>8} {'95 % s':>7}  pair"
    )
    for each in stats.pairs:
        console.print(
            f"{_amounts(each)} {_time(each.median_seconds):>8} {_time(each.slow_seconds):>7}  {each.pair}"
        )
    pairs = pluralize(len(stats.pairs), "pair")
    console.print(f"{_amounts(stats)} {'':16}  {pairs}, {pluralize(stats.messages_a_pair, 'message')} each")
    counted = [f"{count} {_LIFETIMES[name]}" for name, count in stats.lifetimes.items() if count]
    if counted:
        console.print(f"{stats.tokens_a_pair:,.0f} tokens a pair; lifetimes: {', '.join(counted)}")


def show_reply(reply: TeamReply, console: Console, *, is_json: bool) -> int:
    """Print the answer to stdout and everything else to stderr."""
    if is_json:
        console.json(reply)
    else:
        for note in reply.notes:
            console.say(f"note: {note}", "ask")
        if reply.text:
            console.print(escape_invisible(reply.text))
        if isinstance(reply.outcome, Error):
            console.say(f"holdfast: {reply.outcome.message} ({reply.outcome.code})", "bad", folds=True)
            if reply.outcome.hint:
                console.say(f"hint: {reply.outcome.hint}", folds=True)
    return exit_codes.OK if is_success(reply.outcome) else exit_codes.ERROR


def _amounts(each: PairStats | TeamsStats) -> str:
    return f"{each.messages:>8} {each.failed:>6} {each.tokens:>10,} {_price(each.cost_usd):>8}"


def _price(cost: object) -> str:
    return "?" if cost is None else f"${cost:.2f}"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f}"


def _short(text: str) -> str:
    words = " ".join(escape_invisible(text).split())
    return words if len(words) <= _WORDS else f"{words[: _WORDS - 1]}…"
