"""Cases from other projects with their correct results: names, ids, reserved words."""

import csv
import json
from pathlib import Path

import pytest
from tests.store.sample_events import opened

from holdfast.core import SessionId, check_session_id
from holdfast.core.errors import InvalidId, InvalidInput, InvalidName
from holdfast.core.events import SessionRenamed
from holdfast.store import Store
from holdfast.store.sqlite.store import SqliteStore

_LINES = (Path(__file__).parent / "data" / "session-cases.tsv").read_text().splitlines()
_ROWS = list(csv.DictReader(_LINES, delimiter="\t", quoting=csv.QUOTE_NONE))
NAMES = {row["id"]: row for row in _ROWS if row["operation"] == "save_name"}
IDS = {f"{row['id']}-{row['operation']}": row for row in _ROWS if row["operation"] != "save_name"}
PRECISE = {
    "ok:<generated id, display name kept>": "ok:日本語",
    "ok:my.jsonx and survives index rebuild": "ok:my.jsonx",
}
"""The result here for each description in the table."""


def test_every_case_has_a_row() -> None:
    assert len(NAMES) == 33
    assert len(IDS) == 21


@pytest.mark.parametrize("case", NAMES)
async def test_a_name_is_stored_or_refused(store: Store, case: str) -> None:
    given, wanted = json.loads(NAMES[case]["input_json"]), NAMES[case]["ours"]
    wanted = PRECISE.get(wanted, wanted)
    by_renaming = await store.create(opened())
    if wanted.startswith("ok:"):
        journal = await store.create(opened(name=given))
        assert (await store.summary(journal.session)).name == wanted[3:]
        assert await store.find(wanted[3:]) == journal.session
        assert await store.find(given) == journal.session
        return
    for attempt in (store.create(opened(name=given)), by_renaming.append(SessionRenamed(name=given))):
        with pytest.raises(InvalidName) as refusal:
            await attempt
        assert _kind(refusal.value) == wanted
    assert len(await store.sessions()) == 1


@pytest.mark.parametrize("case", IDS)
async def test_an_id_is_accepted_or_refused(store: Store, case: str) -> None:
    given, wanted = json.loads(IDS[case]["input_json"]), IDS[case]["ours"]
    if wanted == "ok":
        assert (await store.create(opened(), session=given)).session == given
        return
    for attempt in (store.create(opened(), session=given), store.open(given), store.delete(given)):
        with pytest.raises(InvalidId) as refusal:
            await attempt
        if wanted == "error:reserved":
            assert _kind(refusal.value) == wanted


async def test_a_name_survives_a_rebuild_of_the_index(disk: SqliteStore) -> None:
    journal = await disk.create(opened(name="my.jsonx"))
    await disk.rebuild_index()
    assert await disk.find("my.jsonx") == journal.session


def test_a_generated_id_is_its_own_name() -> None:
    assert check_session_id("2026-01-01-00-00-00-000-ab12") == SessionId("2026-01-01-00-00-00-000-ab12")


def _kind(refusal: InvalidInput) -> str:
    words = f"{refusal} {refusal.hint}"
    return "error:empty" if "empty" in words else "error:reserved" if "reserved" in words else "error:invalid"
