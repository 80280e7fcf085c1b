"""Sessions: post a message, advance the turn, hear the events; and everything a person may do with them."""

from holdfast.session.approver import Approver
from holdfast.session.assembly import assemble
from holdfast.session.host import Host
from holdfast.session.session import Session
from holdfast.session.settings import Settings
from holdfast.session.staging import staged_changes
from holdfast.session.status import Lifecycle, Status, TurnRecord
from holdfast.session.transport import ScriptedTransport, Transport

__all__ = [
    "Approver",
    "Host",
    "Lifecycle",
    "ScriptedTransport",
    "Session",
    "Settings",
    "Status",
    "Transport",
    "TurnRecord",
    "assemble",
    "staged_changes",
]
