"""Commands of a conversation. Each is a few lines over what the session can do; none has rights of its own."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from holdfast.app import Runtime
from holdfast.cli.approval_text import cost_so_far, what_happens
from holdfast.cli.console import Teller, Tone, visible
from holdfast.core import DIMENSIONS, Escalation, Grant, Response, SystemClock, sanitise_name
from holdfast.core.errors import InvalidInput
from holdfast.session import Session


class Talking(Protocol):
    """The conversation that a command is typed in."""

    session: Session

    @property
    def name(self) -> str:
        """The transport, as it stands in the record."""
        ...

    @property
    def runtime(self) -> Runtime:
        """Where other sessions come from."""
        ...

    @property
    def screen(self) -> Teller:
        """Where words go."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs or waits."""
        ...

    def adopt(self, session: Session) -> None:
        """Talk with this session from here on."""
        ...

    def leave(self) -> None:
        """End the conversation."""
        ...


Action = Callable[[Talking, str], Awaitable[None]]


class Command(NamedTuple):
    """What is typed, what it does, and the function that does it."""

    usage: str
    what: str
    action: Action


async def perform(talk: Talking, line: str) -> None:
    """Do what a line that begins with a slash says."""
    word, _, rest = line.strip().partition(" ")
    command = COMMANDS.get(word)
    if command is None:
        raise InvalidInput(f"there is no {visible(word)}", hint="/help lists what there is")
    await command.action(talk, rest.strip())


async def _help(talk: Talking, rest: str) -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        talk.screen.say(f"  {command.usage:<{width}}  {command.what}")
    talk.screen.say(
        "  Ctrl-C stops the turn, Ctrl-D leaves, Alt-Enter or a backslash at the end begins another line"
    )


async def _approve(talk: Talking, rest: str) -> None:
    waiting = talk.session.escalations()
    chosen = waiting if rest == "all" else (_chosen(waiting, rest),)
    for escalation in chosen:
        await talk.session.resolve(escalation.id, Response(verdict="approve"), transport=talk.name)


async def _deny(talk: Talking, rest: str) -> None:
    number, _, reason = rest.partition(" ")
    if not number.isdigit():
        number, reason = "", rest
    escalation = _chosen(talk.session.escalations(), number)
    response = Response(verdict="deny", reason=reason.strip() or None)
    await talk.session.resolve(escalation.id, response, transport=talk.name)


def _chosen(waiting: tuple[Escalation, ...], number: str) -> Escalation:
    if not waiting:
        raise InvalidInput("nothing waits for you")
    if not number and len(waiting) == 1:
        return waiting[0]
    if number.isdigit() and 1 <= int(number) <= len(waiting):
        return waiting[int(number) - 1]
    listed = "; ".join(f"{place} {what_happens(each)}" for place, each in enumerate(waiting, 1))
    raise InvalidInput(f"{len(waiting)} wait: {listed}", hint="say which by its number")


async def _grants(talk: Talking, rest: str) -> None:
    from holdfast.gate import GrantBook, describe_grant

    grants = [*GrantBook(talk.runtime.home.grants).grants(), *_given(talk)]
    for grant in {grant.id: grant for grant in grants}.values():
        talk.screen.say(f"  {grant.id}  {visible(describe_grant(grant))}")
    if not grants:
        talk.screen.say("  no grants stand")


def _given(talk: Talking) -> list[Grant]:
    from holdfast.core.events import GrantGiven, GrantRevoked, Recorded

    given: dict[str, Grant] = {}

    def take(entry: Recorded) -> None:
        if isinstance(entry.event, GrantGiven):
            given[entry.event.grant.id] = entry.event.grant
        elif isinstance(entry.event, GrantRevoked):
            given.pop(entry.event.grant, None)

    talk.session.follow(take)
    now_ms = SystemClock().now_ms()
    return [grant for grant in given.values() if grant.expires_ms is None or grant.expires_ms > now_ms]


async def _logs(talk: Talking, rest: str) -> None:
    from holdfast.cli.audit_table import audit_table

    for line in audit_table(talk.session.audit()):
        talk.screen.say(f"  {line}")
    for note in talk.session.diagnostics():
        talk.screen.say(f"  {note.code}: {visible(note.text)}")


async def _budget(talk: Talking, rest: str) -> None:
    budget = talk.session.budget
    for dimension in DIMENSIONS:
        spent, limit = getattr(budget.spent, dimension), getattr(budget.limits, dimension)
        shown = "unknown" if spent is None else f"{spent:,.2f}" if isinstance(spent, float) else f"{spent:,}"
        talk.screen.say(f"  {dimension:<14} {shown:>12} of {'no limit' if limit is None else f'{limit:,}'}")


async def _cost(talk: Talking, rest: str) -> None:
    talk.screen.say(f"  {cost_so_far(talk.session)}")


async def _diff(talk: Talking, rest: str) -> None:
    for proposal in talk.session.proposals():
        if not rest or proposal.path in rest.split():
            for line in visible(proposal.diff).splitlines():
                talk.screen.say(line, _tone(line))
    if not talk.session.proposals():
        talk.screen.say("  nothing is staged")


async def _commit(talk: Talking, rest: str) -> None:
    _check_staged(talk)
    await talk.session.commit(*rest.split())


async def _reject(talk: Talking, rest: str) -> None:
    _check_staged(talk)
    await talk.session.reject(*rest.split())


def _check_staged(talk: Talking) -> None:
    if not talk.session.proposals():
        raise InvalidInput("nothing is staged")


async def _rewind(talk: Talking, rest: str) -> None:
    turn, _, word = rest.partition(" ")
    if not turn.isdigit():
        for record in talk.session.history():
            talk.screen.say(f"  {record.number:>3}  {' '.join(visible(record.asked).split())[:70]}")
        talk.screen.say("  /rewind N shows the way back to the end of turn N; /rewind N go takes it")
        return
    is_done = word == "go"
    plan = await (talk.session.rewind if is_done else talk.session.plan_rewind)(int(turn))
    for change in plan.changes:
        talk.screen.say(f"  {change.kind:<9} {visible(change.path)}")
    for effect in plan.stays:
        talk.screen.say(f"  cannot be undone: {visible(effect)}", "bad")
    said = (
        f"  back at the end of turn {turn}"
        if is_done
        else f"  nothing is changed yet; /rewind {turn} go takes you there"
    )
    talk.screen.say(said)


async def _fork(talk: Talking, rest: str) -> None:
    _check_ready(talk)
    fork = await talk.runtime.fork(talk.session.id, name=rest or None)
    await talk.session.close()
    talk.adopt(fork)
    talk.screen.say(f"  you are in {fork.id} now, in a folder of its own; the other is as it was")


async def _compact(talk: Talking, rest: str) -> None:
    talk.screen.say(f"  summarised: {visible(await talk.session.compact())}")


async def _model(talk: Talking, rest: str) -> None:
    if not rest:
        talk.screen.say(f"  {talk.session.status.model}; /model PROVIDER:NAME takes another")
        return
    await _reopen(talk, model=rest)
    talk.screen.say(f"  from here on: {rest}")


async def _policy(talk: Talking, rest: str) -> None:
    if not rest:
        talk.screen.say(f"  {visible(talk.session.status.policy)}; /policy NAME|FILE takes another")
        return
    await _reopen(talk, policy=rest)
    talk.screen.say(f"  from here on: {visible(rest)}")


async def _why(talk: Talking, rest: str) -> None:
    from holdfast.cli.commands.why import explain

    entries = talk.session.audit()
    wanted = [entry for entry in entries if entry.call == rest] if rest else entries[-1:]
    if not wanted:
        raise InvalidInput("there is no such call", hint="/logs numbers them")
    for line in explain(wanted[0]):
        talk.screen.say(f"  {line}")


async def _sessions(talk: Talking, rest: str) -> None:
    from holdfast.cli.commands.sessions import row

    now_ms = SystemClock().now_ms()
    for summary in await talk.runtime.store.sessions(limit=20):
        talk.screen.say(f"  {row(summary, now_ms)}")


async def _resume(talk: Talking, rest: str) -> None:
    from holdfast.cli.resuming import notice_of

    if not rest:
        raise InvalidInput("say which session", hint="/sessions lists them")
    _check_ready(talk)
    found = await talk.runtime.store.find(rest)
    if found == talk.session.id:
        raise InvalidInput("you are in it")
    notice = await notice_of(talk.runtime.store, found)
    session = await talk.runtime.resume(found)
    await talk.session.close()
    talk.adopt(session)
    talk.screen.say(notice, "dim")
    talk.screen.say(f"  you are in {session.status.name or session.id} now, {len(session.history())} turns")


async def _rename(talk: Talking, rest: str) -> None:
    await talk.session.rename(sanitise_name(rest))
    talk.screen.say(f"  it is called {talk.session.status.name} now")


async def _files(talk: Talking, rest: str) -> None:
    for path in talk.session.workspace.list(rest or "**/*"):
        talk.screen.say(f"  {visible(path)}")


async def _quit(talk: Talking, rest: str) -> None:
    talk.leave()


async def _reopen(talk: Talking, *, model: str | None = None, policy: str | None = None) -> None:
    """Take the same session up again with something changed; where that fails it is taken up as it was."""
    _check_ready(talk)
    name, before = talk.session.id, talk.session.status
    await talk.session.close()
    try:
        session = await talk.runtime.resume(name, model=model, policy=policy)
    except BaseException:
        talk.adopt(await talk.runtime.resume(name, model=before.model, policy=before.policy))
        raise
    talk.adopt(session)


def _check_ready(talk: Talking) -> None:
    if talk.is_busy:
        raise InvalidInput("a turn is running", hint="wait for it, or stop it with Ctrl-C")


def _tone(line: str) -> Tone:
    if line.startswith(("+++", "---", "@@")):
        return "strong"
    return "good" if line.startswith("+") else "bad" if line.startswith("-") else "plain"


_ALL = (
    Command("/help", "this list", _help),
    Command("/approve [N|all]", "say yes, once, to what waits", _approve),
    Command("/deny [N] [reason]", "say no to what waits", _deny),
    Command("/grants", "standing yeses", _grants),
    Command("/logs", "every call, and what was worth telling", _logs),
    Command("/budget", "what may be spent and was", _budget),
    Command("/cost", "what was spent, in a line", _cost),
    Command("/diff [PATH...]", "what is staged", _diff),
    Command("/commit [PATH...]", "make what is staged", _commit),
    Command("/reject [PATH...]", "drop what is staged", _reject),
    Command("/rewind [N [go]]", "go back to the end of a turn, files included", _rewind),
    Command("/fork [NAME]", "go on in a copy of this session", _fork),
    Command("/compact", "put a summary in the place of older turns", _compact),
    Command("/model [NAME]", "which model; or take another", _model),
    Command("/policy [NAME|FILE]", "which policy; or take another", _policy),
    Command("/why [CALL]", "why the last call, or this one, was judged as it was", _why),
    Command("/sessions", "other sessions", _sessions),
    Command("/resume SESSION", "go to another session", _resume),
    Command("/rename NAME", "give this session a name", _rename),
    Command("/files [PATTERN]", "the files it works on", _files),
    Command("/quit", "leave; holdfast -c takes it up again", _quit),
    Command("/exit", "the same", _quit),
)
COMMANDS: dict[str, Command] = {command.usage.split()[0]: command for command in _ALL}
