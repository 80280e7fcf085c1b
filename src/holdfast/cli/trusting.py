"""The question whether a folder is trusted, before anything in it is read: asked once, and no unless said otherwise."""

import os
from pathlib import Path

from holdfast.cli.confirming import says_yes
from holdfast.cli.console import Console, visible
from holdfast.core.errors import InvalidInput
from holdfast.store import Home
from holdfast.world import TrustBook, open_folder


async def is_trusted(workspace: str | None, home: Home, console: Console, *, is_given: bool) -> bool:
    """Whether the folder may be opened; a folder of the session's own always may.

    `is_given` is a yes on the command line. Where nobody can be asked it takes that, or a yes of an earlier time.
    Raises InvalidInput for a folder that is none to open, and where nobody can be asked.
    """
    if workspace is None:
        return True
    folder = open_folder(Path(workspace), home.root)
    book = TrustBook(home.trusted_folders)
    if book.trusts(folder):
        return True
    if not is_given and not console.is_interactive:
        raise InvalidInput(
            f"{str(folder)!r} is not trusted yet, and nobody is here to be asked",
            hint="if you trust what is in it, say so once with --trust",
        )
    if not is_given and not await _asked(folder, console):
        console.say("not trusted: the folder was not opened and nothing in it was read")
        return False
    home.prepare()
    book.add(folder)
    return True


async def _asked(folder: Path, console: Console) -> bool:
    console.say(f"  folder  {visible(os.fsencode(folder).decode('utf-8', 'backslashreplace'))}", "ask")
    console.say(
        "          The agent reads what is in it and may be led by what it reads there; the folder's own .holdfast "
        "configuration and policy are taken up. You are asked this once.",
        folds=True,
    )
    return await says_yes("Do you trust this folder?", console)
