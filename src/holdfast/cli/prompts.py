"""Yes-or-no questions at the terminal: confirmations, trust in a folder, and the offer of a local model.

Anything but a clear yes is a no.
"""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.agent import instruction_files_above
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.keyboard import LineKeyboard
from holdfast.cli.terminal.progress import progress_hidden
from holdfast.core import escape_invisible
from holdfast.core.errors import InvalidInput, ModelMissing
from holdfast.models import local_servers, usual_key_variables
from holdfast.store import Home
from holdfast.world import TrustedFolders, open_folder


async def confirm(question: str, console: Console) -> bool:
    """Ask for confirmation. Call it only where `console.is_interactive`."""
    with reading_lines(console) as ask:
        answer = await ask(f"{question} [y/N] ")
    return answer is not None and answer.lower() in ("y", "yes")


@contextmanager
def reading_lines(console: Console) -> Iterator[Callable[[str], Awaitable[str | None]]]:
    """A function that asks a question and reads a line. Call it only where `console.is_interactive`."""
    keyboard = LineKeyboard(write=lambda text: console.say(text, "ask", end=""))
    keyboard.open()
    try:
        with progress_hidden():
            yield keyboard.line
    finally:
        keyboard.close()


async def offer_local_model(missing: ModelMissing, console: Console) -> str:
    """Offer the model of a local server, and return it if the user accepts.

    Raises ModelMissing if there is none, if the user declines, and if no terminal is attached. Its hint then is the exact
    option.
    """
    found = [(server.title, model) for server in await local_servers() for model in server.models]
    if not found:
        raise missing
    title, model = found[0]
    declined = ModelMissing(str(missing), hint=f"{title} on this machine has one: holdfast -m {model}")
    if not console.is_interactive:
        raise declined
    others = f" (and {len(found) - 1} more: holdfast model list)" if len(found) > 1 else ""
    console.say(f"  model   {title} on this machine has {model}{others}", "ask", folds=True)
    console.say(
        "          No provider key is set. With this model, your messages stay on this machine.", folds=True
    )
    if not await confirm("Use it for this session?", console):
        raise declined
    return model


async def offer_demo(console: Console, *, servers: str | None) -> bool:
    """Say what was looked for where no model is configured, and whether the user wants to see the demo instead.

    `servers` says how to use the local model that the user declined; None if no server was found.
    """
    console.say("  No model is configured yet.", "ask")
    *most, last = (f"${name}" for name in usual_key_variables())
    console.say(f"  keys     none is set: {', '.join(most)} or {last}")
    servers = servers or "none answers on this machine: Ollama, llama-server, LM Studio"
    console.say(f"  servers  {servers}", folds=True)
    console.say("  demo     a whole session without a key or network, in its own folder")
    return await confirm("Watch the demo?", console)


async def ensure_trusted(workspace: str | None, home: Home, console: Console, *, is_given: bool) -> bool:
    """Whether the workspace folder is trusted; the session's own folder always is.

    Trust is asked for once, before anything in the folder is read. `is_given` is the consent of `--trust`. Without a terminal
    only that, or trust given earlier, counts. Raises InvalidInput for a folder that cannot be a workspace, and where no
    terminal is attached to ask at.
    """
    if workspace is None:
        return True
    folder = open_folder(Path(workspace), home.root)
    trusted = TrustedFolders(home.trusted_folders)
    if trusted.trusts(folder):
        return True
    if not is_given and not console.is_interactive:
        raise InvalidInput(
            f"{str(folder)!r} is not trusted yet, and no terminal is attached to ask at",
            hint="if you trust its content, pass --trust once; or work in an empty folder with --scratch",
        )
    if not is_given and not await _ask_for_trust(folder, console):
        console.say("not trusted: the folder was not opened, and nothing in it was read")
        return False
    home.prepare()
    trusted.add(folder)
    return True


async def _ask_for_trust(folder: Path, console: Console) -> bool:
    console.say(
        f"  folder  {escape_invisible(os.fsencode(folder).decode('utf-8', 'backslashreplace'))}", "ask"
    )
    above = instruction_files_above(folder)
    places = f"them and in {escape_invisible(', '.join(above))}" if above else "them"
    console.say(
        f"          The agent reads these files and may follow instructions in {places}. The folder's own .holdfast "
        "configuration and policy take effect. You are asked once per folder.",
        folds=True,
    )
    return await confirm("Do you trust this folder?", console)
