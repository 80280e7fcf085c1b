"""Slash commands to switch session, model and policy, and to quit."""

import base64
import shutil
import sys
from pathlib import Path
from textwrap import indent

from holdfast.cli.chat.modes import GO_REQUEST, LABELS, MODES, PLAN_POLICY
from holdfast.cli.chat.slash.contract import ChatContext, check_ready, split_words
from holdfast.cli.chat.welcome import show_last_exchange, shown_folder
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import progress_hidden
from holdfast.cli.views.diff_lines import LINE_TONES, diff_lines
from holdfast.cli.views.merge import merge_lines
from holdfast.cli.views.session_table import heading, row
from holdfast.core import PERSON, Ok, Proposed, SessionId, SystemClock, escape_invisible, pluralize
from holdfast.core.errors import InvalidInput
from holdfast.policy import named_policies
from holdfast.store import export_signed

MODEL_LINES = 20
"""How many models `/model` lists; `/model all` lists the others."""


async def sessions(chat: ChatContext, rest: str) -> None:
    """List sessions."""
    now_ms = SystemClock().now_ms()
    width = None if chat.screen.is_plain else shutil.get_terminal_size().columns - 2
    if width is not None:
        chat.screen.say(indent(heading(width), "  "), "dim")
    for summary in await chat.runtime.store.sessions(limit=20):
        chat.screen.say(indent(row(summary, now_ms, width=width), "  "))


async def resume(chat: ChatContext, rest: str) -> None:
    """Switch to another session: the one named, or the one that the user picks."""
    from holdfast.cli.views.resume import resume_notice_for

    if not rest and chat.screen.is_plain:
        await sessions(chat, "")
        raise InvalidInput(
            "no session given", hint="/resume with the last four characters of an id, or a name"
        )
    await check_ready(chat)
    found = await chat.runtime.store.find(rest) if rest else await _pick_session(chat)
    if found is None:
        chat.screen.say("  no session was chosen", "dim")
        return
    if found == chat.session.id:
        raise InvalidInput("this is the current session")
    notice = await resume_notice_for(chat.runtime.store, found)
    session = await chat.runtime.resume(found)
    await chat.session.close()
    chat.attach(session)
    chat.screen.say(notice, "dim")
    chat.screen.say(
        f"  switched to {session.status.name or session.id}, {pluralize(len(session.history()), 'turn')}"
    )
    show_last_exchange(chat.screen, session)


async def _pick_session(chat: ChatContext) -> SessionId | None:
    from holdfast.cli.views.resume import choose_session

    async with chat.screen.exclusive():
        with progress_hidden():
            chosen = await choose_session(
                chat.runtime.store, True, Console(is_plain=chat.screen.is_plain), is_plain=False
            )
    return None if chosen is None else chosen.summary.id


async def rename(chat: ChatContext, rest: str) -> None:
    """Rename this session."""
    await chat.session.rename(rest)
    chat.screen.say(f"  renamed to {chat.session.status.name}")


async def fork(chat: ChatContext, rest: str) -> None:
    """Continue in a copy of this session."""
    await check_ready(chat)
    fork = await chat.runtime.fork(chat.session.id, name=rest or None)
    await chat.session.close()
    chat.attach(fork)
    chat.screen.say(
        f"  switched to the fork {fork.status.name or fork.id}, which works in its own copy of the files; the original is unchanged",
        folds=True,
    )
    chat.screen.say(f"  folder: {shown_folder(str(chat.runtime.home.workspace(fork.id)))}", "dim", folds=True)
    chat.screen.say("  /merge shows what the fork changed and brings it back", "dim")


async def merge(chat: ChatContext, rest: str) -> None:
    """Show what this fork would change in the folder of its parent, or commit it there."""
    await check_ready(chat)
    if rest not in ("", "go"):
        raise InvalidInput(f"/merge has no {rest!r}", hint="/merge shows the changes, /merge go commits them")
    plan = await chat.runtime.plan_merge(chat.session.id)
    for proposal in () if rest else plan.proposals:
        for each in diff_lines(proposal):
            chat.screen.say_line(each.pieces, LINE_TONES[each.kind])
    for line, tone in merge_lines(plan):
        chat.screen.say(f"  {line}", tone, folds=True)
    plan.check()
    if rest and plan.proposals:
        await chat.runtime.merge(chat.session.id, shown=plan)
        chat.screen.say(f"  merged {pluralize(len(plan.proposals), 'file')} into {plan.parent}", "good")
    elif plan.proposals:
        chat.screen.say("  nothing has changed yet; /merge go commits it in the parent's folder")


async def compact(chat: ChatContext, rest: str) -> None:
    """Replace older turns with a summary."""
    await check_ready(chat)
    chat.screen.say(f"  summarized: {escape_invisible(await chat.session.compact())}", folds=True)


async def model(chat: ChatContext, rest: str) -> None:
    """Show the model and what its provider offers, or switch to another."""
    if rest in ("", "all"):
        await _show_models(chat, is_complete=rest == "all")
        return
    chosen = rest if ":" in rest else await _offered_model(chat, rest)
    await _reopen(chat, model=chosen)
    chat.screen.say(f"  model: {escape_invisible(chosen)}")


async def _offered_model(chat: ChatContext, name: str) -> str:
    """The model of the current provider that a name without its provider means: exactly that one, or the only one that has it."""
    offered = await _offered(chat)
    fitting = [each for each in offered if each.partition(":")[2] == name] or [
        each for each in offered if name in each
    ]
    if len(fitting) > 1:
        raise InvalidInput(
            f"{name!r} fits several models", hint=f"one of {escape_invisible(', '.join(fitting[:5]))}"
        )
    return fitting[0] if fitting else name


async def _offered(chat: ChatContext) -> tuple[str, ...]:
    from holdfast.models import list_models

    current = chat.session.status.model
    return await list_models(current, settings=chat.runtime.settings.model_requests) if current else ()


async def _show_models(chat: ChatContext, *, is_complete: bool) -> None:
    from holdfast.models import price

    current = chat.session.status.model
    chat.screen.say(f"  {escape_invisible(current)}; switch with /model PROVIDER:NAME")
    offered = await _offered(chat)
    priced = sorted(((price(spec), spec) for spec in offered), key=lambda each: (each[0] is None, each[1]))
    shown = priced if is_complete else priced[:MODEL_LINES]
    width = max((len(spec) for _, spec in shown), default=0)
    for found, spec in shown:
        cost = "price unknown" if found is None else f"${found.input_usd:.2f} in, ${found.output_usd:.2f} out"
        mark = "*" if spec == current else " "
        chat.screen.say(f"  {mark} {escape_invisible(f'{spec:<{width}}')}  {cost}")
    if left_out := len(priced) - len(shown):
        chat.screen.say(f"  {pluralize(left_out, 'model')} omitted; show them with /model all", "dim")
    if any(found is not None for found, _ in shown):
        chat.screen.say("  US dollars per million tokens", "dim")


async def policy(chat: ChatContext, rest: str) -> None:
    """Show the policy, or switch to another."""
    if not rest:
        chat.screen.say(f"  {escape_invisible(chat.session.status.policy)}; switch with /policy NAME|FILE")
        own = (path.stem for path in chat.runtime.home.policies.glob("*.yaml"))
        names = ", ".join(map(escape_invisible, sorted({*named_policies(), *own})))
        chat.screen.say(f"  names: {names}", "dim", folds=True)
        return
    await _reopen(chat, policy=rest)
    chat.screen.say(f"  policy: {escape_invisible(rest)}")


async def mode(chat: ChatContext, rest: str) -> None:
    """Show the mode, or switch to another."""
    current = chat.modes.mode
    if not rest:
        chat.screen.say(f"  {LABELS[current]}; switch with /mode {'|'.join(MODES)}, or Shift-Tab")
        return
    chosen = next((each for each in MODES if each == rest), None)
    if chosen is None:
        raise InvalidInput(f"there is no mode {escape_invisible(rest)}", hint=f"/mode {'|'.join(MODES)}")
    if chosen == "plan" and current != "plan":
        await _reopen(chat, policy=PLAN_POLICY)
    elif current == "plan" and chosen != "plan":
        await _reopen(chat, policy=chat.modes.usual_policy)
    chat.modes.accepts_edits = chosen == "edits"
    meaning = {
        "ask": f"policy {escape_invisible(chat.session.status.policy)}; you commit what is staged",
        "edits": "each turn's changes are committed when it ends, except what needs your approval and files that programs run later",
        "plan": f"policy {PLAN_POLICY}: the agent reads and changes nothing",
    }[chosen]
    chat.screen.say(f"  mode: {LABELS[chosen]} ({meaning})", "ask", folds=True)


async def carry_out(chat: ChatContext, rest: str) -> None:
    """Accept the plan: return to mode ask and let the agent carry it out."""
    if chat.modes.mode != "plan":
        raise InvalidInput("there is no plan to carry out", hint="/mode plan, or Shift-Tab")
    await mode(chat, "ask")
    chat.queue.append((GO_REQUEST, PERSON))
    chat.resume()


async def copy(chat: ChatContext, rest: str) -> None:
    """Copy the last answer by OSC 52, which most terminals support, also over SSH."""
    outcomes = (turn.outcome for turn in reversed(chat.session.history()))
    values = (each.value for each in outcomes if isinstance(each, Ok | Proposed))
    # A command of the person has a result and no answer.
    answer = next((value for value in values if isinstance(value, str) and value), None)
    if answer is None:
        raise InvalidInput("there is no answer to copy")
    if chat.screen.is_plain:
        raise InvalidInput("a plain terminal has no clipboard", hint="holdfast show prints the conversation")
    content = base64.b64encode(answer.encode("utf-8", "replace")).decode()
    sys.stdout.write(f"\x1b]52;c;{content}\x07")
    sys.stdout.flush()
    chat.screen.say(f"  copied {pluralize(len(answer), 'character')}", "dim")


async def export(chat: ChatContext, rest: str) -> None:
    """Write this session to an archive."""
    words = split_words(rest)
    path = Path(words[0] if len(words) == 1 else rest or f"{chat.session.id}.zip").expanduser()
    runtime = chat.runtime
    exported = await export_signed(
        runtime.store, runtime.home, chat.session.id, path, now_ms=SystemClock().now_ms()
    )
    chat.screen.say(f"  wrote {path}, {pluralize(exported.manifest.events, 'event')}", folds=True)
    if exported.warning:
        chat.screen.say(f"  {exported.warning}", "bad", folds=True)


async def leave(chat: ChatContext, rest: str) -> None:
    """Quit."""
    chat.leave()


async def _reopen(chat: ChatContext, *, model: str | None = None, policy: str | None = None) -> None:
    """Reopen the session with another model or policy. If that fails, reopen it unchanged."""
    await check_ready(chat)
    name, before = chat.session.id, chat.session.status
    await chat.session.close()
    try:
        session = await chat.runtime.resume(name, model=model, policy=policy)
    except BaseException:
        chat.attach(await chat.runtime.resume(name, model=before.model, policy=before.policy))
        raise
    chat.attach(session)
