"""Where the conversation takes place: which session, which model, which policy; and leaving it."""

import shutil
from textwrap import indent

from holdfast.cli.chat.slash.contract import ChatContext, check_ready
from holdfast.cli.views.session_table import heading, row
from holdfast.core import SystemClock, escape_invisible, pluralize
from holdfast.core.errors import InvalidInput


async def sessions(talk: ChatContext, rest: str) -> None:
    """List other sessions."""
    now_ms = SystemClock().now_ms()
    width = None if talk.screen.is_plain else shutil.get_terminal_size().columns - 2
    if width is not None:
        talk.screen.say(indent(heading(width), "  "), "dim")
    for summary in await talk.runtime.store.sessions(limit=20):
        talk.screen.say(indent(row(summary, now_ms, width=width), "  "))


async def resume(talk: ChatContext, rest: str) -> None:
    """Go to another session."""
    from holdfast.cli.views.resume import resume_notice_for

    if not rest:
        raise InvalidInput("say which session", hint="/sessions lists them")
    await check_ready(talk)
    found = await talk.runtime.store.find(rest)
    if found == talk.session.id:
        raise InvalidInput("you are in it")
    notice = await resume_notice_for(talk.runtime.store, found)
    session = await talk.runtime.resume(found)
    await talk.session.close()
    talk.attach(session)
    talk.screen.say(notice, "dim")
    talk.screen.say(
        f"  you are in {session.status.name or session.id} now, {pluralize(len(session.history()), 'turn')}"
    )


async def rename(talk: ChatContext, rest: str) -> None:
    """Give this session a name."""
    await talk.session.rename(rest)
    talk.screen.say(f"  it is called {talk.session.status.name} now")


async def fork(talk: ChatContext, rest: str) -> None:
    """Go on in a copy of this session."""
    await check_ready(talk)
    fork = await talk.runtime.fork(talk.session.id, name=rest or None)
    await talk.session.close()
    talk.attach(fork)
    talk.screen.say(f"  you are in {fork.id} now, in a folder of its own; the other is as it was", folds=True)


async def compact(talk: ChatContext, rest: str) -> None:
    """Put a summary in the place of older turns."""
    await check_ready(talk)
    talk.screen.say(f"  summarised: {escape_invisible(await talk.session.compact())}", folds=True)


async def model(talk: ChatContext, rest: str) -> None:
    """Say which model, or take another."""
    if not rest:
        talk.screen.say(f"  {talk.session.status.model}; /model PROVIDER:NAME takes another")
        return
    await _reopen(talk, model=rest)
    talk.screen.say(f"  from here on: {rest}")


async def policy(talk: ChatContext, rest: str) -> None:
    """Say which policy, or take another."""
    if not rest:
        talk.screen.say(f"  {escape_invisible(talk.session.status.policy)}; /policy NAME|FILE takes another")
        return
    await _reopen(talk, policy=rest)
    talk.screen.say(f"  from here on: {escape_invisible(rest)}")


async def leave(talk: ChatContext, rest: str) -> None:
    """Leave."""
    talk.leave()


async def _reopen(talk: ChatContext, *, model: str | None = None, policy: str | None = None) -> None:
    """Take the same session up again with something changed; where that fails it is taken up as it was."""
    await check_ready(talk)
    name, before = talk.session.id, talk.session.status
    await talk.session.close()
    try:
        session = await talk.runtime.resume(name, model=model, policy=policy)
    except BaseException:
        talk.attach(await talk.runtime.resume(name, model=before.model, policy=before.policy))
        raise
    talk.attach(session)
