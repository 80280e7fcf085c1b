"""Another program's requests in a folder: shown exactly, and answered by a file beside them."""

import asyncio
from pathlib import Path

from holdfast.cli.console import Console, visible
from holdfast.cli.exits import OK
from holdfast.core import Response, encode
from holdfast.core.errors import EscalationUnknown, InvalidInput
from holdfast.gate import ForeignRequest, answer_foreign, requests_in


def show_requests(folder: Path, console: Console, *, is_json: bool) -> None:
    """Everything that waits there."""
    found = _requests(folder)
    if is_json:
        console.json(found)
    elif not found:
        console.say("nothing waits for you there")
    for request in () if is_json else found:
        _show(request, console)


async def answer_in(folder: Path, wanted: str | None, console: Console, response: Response) -> int:
    """Answer one of them, and tell whether it was taken."""
    found = [each for each in _requests(folder) if wanted in (None, each.escalation_id)]
    if len(found) != 1:
        what = f"{len(found)} calls wait there; say which" if found else "nothing like that waits there"
        raise EscalationUnknown(what, hint=f"see: holdfast waiting --folder {folder}")
    [request] = found
    _show(request, console)
    answer_foreign(folder, request, is_approved=response.verdict == "approve")
    for _ in range(_LOOKS):
        if request not in requests_in(folder):
            console.say(f"taken: {response.verdict}")
            return OK
        await asyncio.sleep(_LOOK_SECONDS)
    console.say("answered; the program that waits has not taken it yet")
    return OK


def _requests(folder: Path) -> list[ForeignRequest]:
    if not folder.is_dir():
        raise InvalidInput(
            f"{str(folder)!r} is no folder", hint="name the folder that the other program waits in"
        )
    return requests_in(folder)


def _show(request: ForeignRequest, console: Console) -> None:
    console.print(visible(f"{request.escalation_id}  {request.server_name}.{request.tool_name}"))
    for name, value in request.arguments.items():
        shown = value if isinstance(value, str) else encode(value).decode()
        console.print(visible(f"    {name}: {shown}"))
    console.print(visible(f"  {request.reason}"))


_LOOKS, _LOOK_SECONDS = 40, 0.05
