"""The introduction of a chat: where it works and under which rules, the last exchange, what waits. The model does not see it."""

import os
from pathlib import Path

from holdfast.cli.terminal.screen import Screen
from holdfast.cli.terminal.wrap import ellipsize
from holdfast.core import escape_invisible, pluralize
from holdfast.session import Session

_SHORT_HASH = 8
_MAX_LINK_BYTES = 4096


def welcome(screen: Screen, session: Session) -> None:
    """Print the introduction."""
    name = session.status.name or session.id
    screen.say(surroundings(session), "dim", folds=True)
    if session.instruction_files:
        screen.say(f"instructions: {', '.join(session.instruction_files)}", "dim", folds=True)
    screen.say(f"session {escape_invisible(name)}; /help lists commands, Ctrl-D quits", "dim", folds=True)
    if not session.history():
        return
    last = session.history()[-1]
    screen.say(f"  last message: {ellipsize(_one_line(last.asked), 60)}", "dim")
    if waiting := session.escalations():
        screen.say(f"  waiting for your approval: {pluralize(len(waiting), 'call')}", "ask")
    if staged := session.proposals():
        paths = ", ".join(escape_invisible(proposal.path) for proposal in staged)
        screen.say(f"  staged: {paths} (/diff shows them)", "ask", folds=True)


def surroundings(session: Session) -> str:
    """One line: folder, git branch, policy, model, and what runs code and programs."""
    status = session.status
    folder = status.opened.workspace if status.opened is not None else ""
    place = _shown_folder(folder) if folder else "an empty folder of its own"
    branch = git_branch(Path(folder)) if folder else ""
    tier = session.sandbox_status.tier
    parts = [
        f"{place} ({escape_invisible(branch)})" if branch else place,
        f"policy {escape_invisible(os.path.basename(status.policy))}",
        escape_invisible(status.model) or "no model",
        f"{status.sandbox} sandbox",
        "no programs" if tier == "none" else f"programs: {tier}",
    ]
    return " · ".join(parts)


def git_branch(folder: Path) -> str:
    """The branch that is checked out, or the start of the commit. Empty if it is not a repository; runs no program."""
    try:
        git = folder / ".git"
        if git.is_file():  # a linked worktree or a submodule
            with git.open("rb") as link:
                target = link.read(_MAX_LINK_BYTES).decode("utf-8", "replace").partition("gitdir:")[2].strip()
            git = folder / target
        with (git / "HEAD").open("rb") as head:
            text = head.read(_MAX_LINK_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    name = text.removeprefix("ref: refs/heads/")
    return name if name != text else text[:_SHORT_HASH]


def _shown_folder(folder: str) -> str:
    home = str(Path.home())
    short = f"~{folder[len(home) :]}" if folder.startswith(f"{home}/") else folder
    return escape_invisible(os.fsencode(short).decode("utf-8", "backslashreplace"))


def _one_line(text: str) -> str:
    return " ".join(escape_invisible(text).split())
