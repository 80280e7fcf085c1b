"""Folders outside the workspace that the person opened in advance: `--add-dir DIR[:ro]`, and `dirs` in the configuration.

Each is an ordinary grant in the session's journal. It covers calls on paths in the folder that the policy would ask about, it is
listed with the other grants, and it can be revoked.
"""

from collections.abc import Sequence
from pathlib import Path

from holdfast.core import PERSON, Clock, Coverage, Grant, GrantId, new_token
from holdfast.core.events import GrantGiven
from holdfast.gate.grants.offers import folder_coverage
from holdfast.store import Journal
from holdfast.world import open_folder

READ_ONLY = ":ro"


def parse_added_folder(text: str, *, home: Path) -> Coverage:
    """What `DIR` or `DIR:ro` covers. Raises InvalidInput for what is not the folder of one project."""
    is_read_only = text.endswith(READ_ONLY)
    folder = open_folder(Path(text.removesuffix(READ_ONLY)), home)
    return folder_coverage(str(folder), is_read_only=is_read_only)


async def record_added_folders(journal: Journal, folders: Sequence[str], *, home: Path, clock: Clock) -> None:
    """Record a grant for each folder that the journal does not know yet. A grant that was revoked stays revoked."""
    known = {entry.event.grant.coverage for entry in journal.recorded if isinstance(entry.event, GrantGiven)}
    coverages = dict.fromkeys(parse_added_folder(each, home=home) for each in folders)
    added = [
        GrantGiven(
            grant=Grant(
                id=GrantId(new_token()),
                operation=coverage.operation,
                rule="add-dir",
                targets=(),
                coverage=coverage,
                scope="session",
                given_by=PERSON,
                given_ms=clock.now_ms(),
            )
        )
        for coverage in coverages
        if coverage not in known
    ]
    if added:
        await journal.append(*added)
