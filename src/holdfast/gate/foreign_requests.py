"""The other side of approval by files: another program waits in a folder, and a person answers it from here.

Only what that format has is read and written: {escalationId, serverName, toolName, arguments, reason} and {decision}.
"""

import re
from pathlib import Path

import msgspec

from holdfast.core import EscalationId, JsonObject, Value, encode
from holdfast.core.errors import EscalationUnknown
from holdfast.gate.own_files import read_own
from holdfast.store import replace_private

_NAME = re.compile(r"request-([A-Za-z0-9-]{1,64})\.json")


class ForeignRequest(Value, rename="camel"):
    """A call of another program that waits for a person."""

    escalation_id: EscalationId
    server_name: str
    tool_name: str
    arguments: JsonObject
    reason: str


def requests_in(folder: Path) -> list[ForeignRequest]:
    """Every request in a folder that can be read and is what its name says, oldest name first."""
    found = []
    for path in sorted(folder.glob("request-*.json")):
        name = _NAME.fullmatch(path.name)
        content = read_own(path) if name is not None else None
        if name is None or not content:
            continue
        try:
            request = msgspec.json.decode(content, type=ForeignRequest)
        except (ValueError, RecursionError):  # no JSON, or no UTF-8 in it
            continue
        if request.escalation_id == name[1]:
            found.append(request)
    return found


def answer_foreign(folder: Path, request: ForeignRequest, *, is_approved: bool) -> None:
    """Answer a request. Raises EscalationUnknown where it no longer waits."""
    if request not in requests_in(folder):
        raise EscalationUnknown(f"{request.escalation_id!r} no longer waits there, or it was changed")
    decision = "approved" if is_approved else "denied"
    replace_private(folder / f"response-{request.escalation_id}.json", encode({"decision": decision}))
