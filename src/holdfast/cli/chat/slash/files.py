"""Slash commands for files: staged changes, the workspace, and rewinding."""

import asyncio
import shlex
from collections.abc import Sequence

from holdfast.cli.chat.slash.contract import ChatContext, check_ready, split_words
from holdfast.cli.chat.welcome import as_typed
from holdfast.cli.terminal.diff_viewer import review as review_hunks
from holdfast.cli.terminal.line_review import review_by_line
from holdfast.cli.terminal.progress import progress_hidden
from holdfast.cli.views.diff_lines import LINE_TONES, diff_lines
from holdfast.cli.views.hunk_review import NOTHING_APPLIED
from holdfast.core import Ok, Proposed, escape_invisible, escape_to_one_line, pluralize, runs_when
from holdfast.core.errors import InvalidInput
from holdfast.core.events import CommitsProposed
from holdfast.services import choose_proposals, decide_hunks
from holdfast.session import COMMAND_MARK, RewindPlan
from holdfast.world import Proposal

MIN_COMMIT_LETTERS = 12
"""Of the commit that a person names to accept it."""
_PICK = "-p"
"""As in git: choose hunk by hunk."""


async def diff(chat: ChatContext, rest: str) -> None:
    """Show the staged changes."""
    if rest.split()[:1] == [_PICK]:
        await review(chat, rest.partition(_PICK)[2])
        return
    proposals = await _chosen(chat, split_words(rest))
    if not proposals:
        chat.screen.say("  nothing is staged")
    for proposal in proposals:
        for line in diff_lines(proposal):
            chat.screen.say_line(line.pieces, LINE_TONES[line.kind])
    if proposals and not chat.screen.is_plain:
        chat.screen.say("  /review accepts or rejects hunk by hunk, /commit takes everything", "dim")


async def review(chat: ChatContext, rest: str) -> None:
    """Accept or reject the staged changes hunk by hunk, on the full screen; in plain mode by questions."""
    await check_ready(chat)
    proposals = await _chosen(chat, split_words(rest))
    if not proposals:
        raise InvalidInput("nothing is staged")
    async with chat.screen.exclusive():
        with progress_hidden():
            if chat.screen.is_plain:
                decisions = await review_by_line(proposals, say=chat.screen.say, ask=chat.ask_line)
            else:
                decisions = await review_hunks(proposals)
    if not decisions:
        chat.screen.say(f"  {NOTHING_APPLIED}")
        return
    await decide_hunks(chat.session, decisions)
    if left := chat.session.proposals():
        chat.screen.say(
            f"  still staged: {', '.join(escape_invisible(each.path) for each in left)}", "ask", folds=True
        )


async def commit(chat: ChatContext, rest: str) -> None:
    """Commit the staged changes; with `--check COMMAND` only if the command succeeds on them."""
    _check_staged(chat)
    if rest.split()[:1] == [_PICK]:
        await review(chat, rest.partition(_PICK)[2])
        return
    check, paths = _commit_words(rest)
    if check is not None and not await _passes(chat, check):
        return
    await chat.session.commit(*paths)
    if asking := [each for each in chat.session.proposals() if each.asks]:
        names = escape_invisible(shlex.join(each.path for each in asking))
        chat.screen.say(
            f"  still staged, because you must approve it by name: /commit {names}", "ask", folds=True
        )


def _commit_words(rest: str) -> tuple[str | None, list[str]]:
    """The command of `--check`, and the paths."""
    try:
        words = shlex.split(rest) if "--check" in rest else split_words(rest)
    except ValueError as error:
        raise InvalidInput(f"cannot read {rest!r}: {error}", hint="/commit --check 'pytest -q'") from None
    if "--check" not in words:
        return None, words
    place = words.index("--check")
    if place + 1 >= len(words):
        raise InvalidInput("--check needs a command", hint="/commit --check 'pytest -q'")
    return words[place + 1], [*words[:place], *words[place + 2 :]]


async def _passes(chat: ChatContext, command: str) -> bool:
    """Run the command in the sandbox, over the workspace with what is staged. It is a turn, so the agent knows the result."""
    await check_ready(chat)
    outcome = await chat.run_now(f"{COMMAND_MARK}{command}")
    result = outcome.value if isinstance(outcome, Ok | Proposed) else None
    code = result.get("code") if isinstance(result, dict) else None
    if code == 0:
        return True
    if outcome is None:
        how = "was stopped"
    elif code is None:
        how = "did not run"
    else:
        how = f"exited with {code}; the agent knows the result"
    chat.screen.say(
        f"  nothing was committed: {escape_invisible(command)} {how}",
        "bad",
        folds=True,
    )
    return False


async def _chosen(chat: ChatContext, paths: Sequence[str]) -> tuple[Proposal, ...]:
    # In a thread, because the diff of a large file takes a while.
    return await asyncio.to_thread(choose_proposals, chat.session, paths)


async def accept(chat: ChatContext, rest: str) -> None:
    """List commits that the agent made in the sandbox, or accept those that end with a commit: the ones that were shown."""
    offered = chat.session.offered_commits()
    if not offered:
        raise InvalidInput("no commits are offered", hint="the agent offers them with git.propose")
    if not rest:
        for each in offered:
            _say_commits(chat, each)
        return
    heads = [each.head for each in offered if len(rest) >= MIN_COMMIT_LETTERS and each.head.startswith(rest)]
    if not heads:
        raise InvalidInput(
            f"no commits that end with {rest!r} are offered", hint="/accept shows what is offered"
        )
    for done in await chat.session.accept_commits(heads=heads):
        chat.screen.say(f"  accepted {escape_invisible(done.ref)} at {done.after[:12]}", "good")


def _say_commits(chat: ChatContext, offered: CommitsProposed) -> None:
    chat.screen.say(f"  {escape_invisible(offered.ref)}", "strong")
    for subject in offered.commits:
        chat.screen.say(f"    {escape_to_one_line(subject)}")
    for path in offered.paths:
        when = runs_when(path)
        chat.screen.say(f"    changes {escape_to_one_line(path)}")
        if when is not None:
            chat.screen.say(f"      this runs when you {when}", "ask")
    if offered.more_paths:
        chat.screen.say(f"    and {pluralize(offered.more_paths, 'other file')}")
    chat.screen.say(
        f"  /accept {offered.head[:MIN_COMMIT_LETTERS]} stores them in your repository as this branch; hooks and configuration stay yours"
    )


async def reject(chat: ChatContext, rest: str) -> None:
    """Reject the staged changes."""
    _check_staged(chat)
    await chat.session.reject(*split_words(rest))


def _check_staged(chat: ChatContext) -> None:
    if not chat.session.staged_paths():
        raise InvalidInput("nothing is staged")


async def rewind(chat: ChatContext, rest: str) -> None:
    """List the turns, preview a rewind to one, or rewind."""
    turn, _, word = rest.partition(" ")
    if not turn.isdigit():
        for record in chat.session.history():
            chat.screen.say(f"  {record.number:>3}  {as_typed(record)[:70]}")
        chat.screen.say("  /rewind N previews a rewind to the end of turn N; /rewind N go does it")
        return
    await check_ready(chat)
    is_done = word == "go"
    plan = await (chat.session.rewind if is_done else chat.session.plan_rewind)(int(turn))
    _say_plan(chat, plan, again="" if is_done else f"/rewind {turn} go")


def _say_plan(chat: ChatContext, plan: RewindPlan, *, again: str) -> None:
    """What a rewind did, or would do: `again` is the command that does it."""
    for change in plan.changes:
        chat.screen.say(f"  {'would be ' if again else ''}{change.kind:<9} {escape_invisible(change.path)}")
    for path in plan.left:
        stays = "would stay" if again else "stays"
        chat.screen.say(
            f"  {stays} unchanged, because it was not saved: {escape_invisible(path)}", "bad", folds=True
        )
    for path in plan.by_others:
        drops = "would also drop" if again else "also dropped"
        chat.screen.say(
            f"  {drops} a change that the turn did not make: {escape_invisible(path)}", "bad", folds=True
        )
    for path in plan.kept:
        stays = "would stay" if again else "stays"
        chat.screen.say(
            f"  {stays} committed, because an older turn changed it: {escape_invisible(path)}", folds=True
        )
    for effect in plan.stays:
        chat.screen.say(f"  cannot be undone: {escape_invisible(effect)}", "bad", folds=True)
    done = f"  rewound to the end of turn {plan.turn}"
    chat.screen.say(f"  nothing has changed yet; {again} does it" if again else done)


async def undo(chat: ChatContext, rest: str) -> None:
    """Undo the last turn. If it had effects that stay, or would drop changes of someone else, show them first."""
    await check_ready(chat)
    plan = await chat.session.plan_undo()
    is_certain = rest == "go" or not (plan.stays or plan.left or plan.by_others)
    if is_certain:
        plan = await chat.session.undo()
    _say_plan(chat, plan, again="" if is_certain else "/undo go")


async def files(chat: ChatContext, rest: str) -> None:
    """List the files of the workspace."""
    for path in chat.session.workspace.list(rest or "**/*"):
        chat.screen.say(f"  {escape_invisible(path)}")
