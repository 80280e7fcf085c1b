"""Traces: the folders of sessions, by which it is known that there was one when the database says nothing of it any more."""

from pathlib import Path

import msgspec

from holdfast.core import SessionId, check_session_id
from holdfast.core.errors import InvalidId
from holdfast.store.fold import Tally, begin
from holdfast.store.home import Home


def traced(home: Home) -> dict[SessionId, Tally]:
    """A line for each session that has a folder: it had one event at least, and was active when its folder was last changed."""
    lines: dict[SessionId, Tally] = {}
    for folder in sorted((home.root / "sessions").glob("*/")):
        try:
            session = check_session_id(folder.name)
        except InvalidId:
            continue
        if not _was_used(folder):
            continue
        changed_ms = max(int(folder.stat().st_mtime * 1000), 0)
        line = begin(session)
        summary = msgspec.structs.replace(line.summary, events=1, created_ms=changed_ms, active_ms=changed_ms)
        lines[session] = msgspec.structs.replace(line, summary=summary)
    return lines


def _was_used(folder: Path) -> bool:
    """Whether it is not merely a place to ask in: a team's member has no more, and its record is begun anew by itself."""
    inside = list(folder.iterdir())
    return [each.name for each in inside] != ["escalations"] or any(inside[0].iterdir())
