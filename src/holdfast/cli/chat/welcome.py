"""The introduction of a chat: where it works and under which rules, the last exchange, what waits. The model does not see it."""

import os
import shutil
from pathlib import Path

from holdfast.cli.terminal.screen import Screen
from holdfast.cli.terminal.status_line import short_model
from holdfast.cli.terminal.wrap import cell_width, ellipsize
from holdfast.core import Ok, Proposed, SystemClock, escape_invisible, format_age, pluralize
from holdfast.session import COMMAND_MARK, Session, TurnRecord

_SHORT_HASH = 8
_SHORT_BRANCH = 12
_SHORT_PLACE = 12
_SHORT_NAME = 14
_ASKED_CELLS = 60
_ANSWER_LINES = 3
_MAX_LINK_BYTES = 4096


def welcome(screen: Screen, session: Session) -> None:
    """Print the introduction."""
    name = session.status.name or session.id
    columns = None if screen.is_plain else shutil.get_terminal_size().columns
    screen.say(surroundings(session, columns), "dim", folds=True)
    if files := session.instruction_files:
        screen.say(f"instructions: {', '.join(map(escape_invisible, files))}", "dim", folds=True)
    screen.say(f"session {escape_invisible(name)}; /help lists commands, Ctrl-D quits", "dim", folds=True)
    show_last_exchange(screen, session)
    if waiting := session.escalations():
        screen.say(f"  waiting for your approval: {pluralize(len(waiting), 'call')}", "ask")
    if staged := session.staged_paths():
        paths = ", ".join(map(escape_invisible, staged))
        screen.say(f"  staged: {paths} (/diff shows them)", "ask", folds=True)


def show_last_exchange(screen: Screen, session: Session) -> None:
    """Print the last message and the start of the answer to it, if there is one."""
    if not session.history():
        return
    last = session.history()[-1]
    age = format_age(SystemClock().now_ms() - last.began_ms)
    screen.say(f"  you, {age} ago: {ellipsize(as_typed(last), _ASKED_CELLS)}", "dim")
    answer = last.outcome.value if isinstance(last.outcome, Ok | Proposed) else None
    if not isinstance(answer, str) or not answer.strip():
        return
    lines = [line for line in escape_invisible(answer).splitlines() if line.strip()]
    for line in lines[:_ANSWER_LINES]:
        screen.say(f"  | {ellipsize(line.rstrip(), _ASKED_CELLS)}", "dim")
    if len(lines) > _ANSWER_LINES:
        left_out = pluralize(len(lines) - _ANSWER_LINES, "more line")
        screen.say(f"  | … {left_out}; /logs shows the session", "dim")


def as_typed(turn: TurnRecord) -> str:
    """What started a turn, in one line as the person typed it: a command with its mark."""
    return _one_line(f"{COMMAND_MARK}{turn.asked}" if turn.language == "shell" else turn.asked)


def surroundings(session: Session, columns: int | None = None) -> str:
    """One line: folder, git branch, policy, model, and what runs code and programs. Shortened where it exceeds `columns`."""
    status = session.status
    folder = status.opened.workspace if status.opened is not None else ""
    is_fork = status.opened is not None and status.opened.parent is not None
    place = shown_folder(folder) if folder else "own copy" if is_fork else "own folder"
    branch = git_branch(Path(folder)) if folder else ""
    tier = session.sandbox_status.tier

    programs = "no programs" if tier == "none" else f"programs: {tier}"
    model, branch = escape_invisible(status.model) or "no model", escape_invisible(branch)
    whole = (place, branch, model, f"{status.sandbox} sandbox · {programs}")
    compact = f"{status.sandbox}, {programs}"
    short_place = f"…/{os.path.basename(place)}" if place.count("/") > 1 else place
    short_branch = ellipsize(branch, _SHORT_BRANCH)
    forms = (
        whole,
        (place, branch, short_model(model), whole[-1]),
        (place, branch, short_model(model), compact),
        (place, branch, _bare(model), compact),
        (short_place, short_branch, _bare(model), compact),
        (ellipsize(short_place, _SHORT_PLACE), short_branch, ellipsize(_bare(model), _SHORT_NAME), compact),
    )
    policy = f"policy {escape_invisible(os.path.basename(status.policy))}"
    lines = [
        f"{where} ({on}) · {policy} · {what} · {how}" if on else f"{where} · {policy} · {what} · {how}"
        for where, on, what, how in forms
    ]
    return next((each for each in lines if columns is None or cell_width(each) <= columns), lines[-1])


def _bare(model: str) -> str:
    """A model without its provider. A script has no name that says more than what it is."""
    provider, _, name = short_model(model).partition(":")
    return provider if provider == "scripted" or not name else name


def git_branch(folder: Path) -> str:
    """The branch that is checked out, or the start of the commit. Empty if it is not a repository; runs no program."""
    try:
        git = next(each / ".git" for each in (folder, *folder.parents) if os.path.lexists(each / ".git"))
        if git.is_file():  # a linked worktree or a submodule
            with git.open("rb") as link:
                target = link.read(_MAX_LINK_BYTES).decode("utf-8", "replace").partition("gitdir:")[2].strip()
            git = git.parent / target
        with (git / "HEAD").open("rb") as head:
            text = head.read(_MAX_LINK_BYTES).decode("utf-8", "replace").strip()
    except (OSError, StopIteration):
        return ""
    name = text.removeprefix("ref: refs/heads/")
    return name if name != text else text[:_SHORT_HASH]


def shown_folder(folder: str) -> str:
    """The path of a folder, with `~` for the home folder."""
    home = str(Path.home())
    short = f"~{folder[len(home) :]}" if folder.startswith(f"{home}/") else folder
    return escape_invisible(os.fsencode(short).decode("utf-8", "backslashreplace"))


def _one_line(text: str) -> str:
    return " ".join(escape_invisible(text).split())
