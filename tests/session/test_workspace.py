"""The folder of a session, read from its journal."""

from itertools import count

from holdfast.core import PERSON, SessionId
from holdfast.core.events import Event, RecordedEvent, SessionOpened, SessionReconfigured, SessionRewound
from holdfast.session.status import workspace_of


def opened(workspace: str) -> SessionOpened:
    return SessionOpened(
        principal=PERSON, folder="/", workspace=workspace, policy="p", policy_digest="", model="m"
    )


def folder_after(*events: Event) -> str:
    return workspace_of(
        RecordedEvent(session=SessionId("s"), seq=seq, at_ms=0, event=event, hash=b"")
        for seq, event in zip(count(1), events, strict=False)
    )


def test_a_session_stays_in_its_folder_when_its_model_changes() -> None:
    assert folder_after(opened("/a"), SessionReconfigured(policy="other")) == "/a"


def test_a_moved_session_stays_moved_after_a_rewind() -> None:
    rewound = SessionRewound(seq=1, turn=0, principal=PERSON)
    assert folder_after(opened("/a"), SessionReconfigured(workspace="/b"), rewound) == "/b"


def test_a_fork_works_in_its_own_folder() -> None:
    assert folder_after(opened("/a"), SessionReconfigured(workspace="/b"), opened("")) == ""
