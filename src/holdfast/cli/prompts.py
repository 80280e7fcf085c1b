"""The question whether a folder is trusted, before anything in it is read: asked once, and no unless said otherwise.

A question to the person at the terminal; whatever is not a clear yes is a no.

No model is configured, but a server on this machine has one: offer it.
"""

import os
from pathlib import Path

from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.keyboard import LineKeyboard
from holdfast.core import escape_invisible
from holdfast.core.errors import InvalidInput, ModelMissing
from holdfast.models import local_servers
from holdfast.store import Home
from holdfast.world import TrustedFolders, open_folder


async def confirm(question: str, console: Console) -> bool:
    """Whether the person says yes. Ask only where somebody is there: `console.is_interactive`."""
    keyboard = LineKeyboard(write=lambda text: console.say(text, "ask", end=""))
    keyboard.open()
    try:
        answer = await keyboard.line(f"{question} [y/N] ")
    finally:
        keyboard.close()
    return answer is not None and answer.lower() in ("y", "yes")


async def offer_local_model(missing: ModelMissing, console: Console) -> str:
    """The model of a local server, if the person says yes to it.

    Raises ModelMissing where there is none, where the person says no, and where nobody can be asked; its hint then is
    the exact option.
    """
    found = [(server.title, model) for server in await local_servers() for model in server.models]
    if not found:
        raise missing
    title, model = found[0]
    declined = ModelMissing(str(missing), hint=f"{title} on this machine has one: holdfast -m {model}")
    if not console.is_interactive:
        raise declined
    others = f" (and {len(found) - 1} more: holdfast model list)" if len(found) > 1 else ""
    console.say(f"  model   {title} on this machine has {model}{others}", "ask")
    console.say("          There is no key of a provider here. What you write would not leave this machine.")
    if not await confirm("Use it for this session?", console):
        raise declined
    return model


async def ensure_trusted(workspace: str | None, home: Home, console: Console, *, is_given: bool) -> bool:
    """Whether the folder may be opened; a folder of the session's own always may.

    `is_given` is a yes on the command line. Where nobody can be asked it takes that, or a yes of an earlier time.
    Raises InvalidInput for a folder that is none to open, and where nobody can be asked.
    """
    if workspace is None:
        return True
    folder = open_folder(Path(workspace), home.root)
    book = TrustedFolders(home.trusted_folders)
    if book.trusts(folder):
        return True
    if not is_given and not console.is_interactive:
        raise InvalidInput(
            f"{str(folder)!r} is not trusted yet, and nobody is here to be asked",
            hint="if you trust what is in it, say so once with --trust",
        )
    if not is_given and not await _ask_for_trust(folder, console):
        console.say("not trusted: the folder was not opened and nothing in it was read")
        return False
    home.prepare()
    book.add(folder)
    return True


async def _ask_for_trust(folder: Path, console: Console) -> bool:
    console.say(
        f"  folder  {escape_invisible(os.fsencode(folder).decode('utf-8', 'backslashreplace'))}", "ask"
    )
    console.say(
        "          The agent reads what is in it and may be led by what it reads there; the folder's own .holdfast "
        "configuration and policy are taken up. You are asked this once.",
        folds=True,
    )
    return await confirm("Do you trust this folder?", console)
