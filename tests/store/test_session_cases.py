"""The numbered cases of other projects: names, reserved words and ids as tables, the rest as functions.

Each row carries its number and the result that is right, also where the project that it comes from had another. A test
makes sure that no number is missing.
"""

import pytest
from tests.store.sample_events import opened
from tests.store.session_cases import STORIES, Stage

from holdfast.core import FakeClock, SessionId
from holdfast.core.errors import InvalidId, InvalidName, SessionNotFound
from holdfast.store import Home, Store
from holdfast.store.sqlite.store import SqliteStore

EMPTY, INVALID, RESERVED = "empty", "invalid", "reserved"

NAMES: dict[str, tuple[str, str]] = {
    "N1": ("my-session", "my-session"),
    "N2": ("My Session With Spaces!", "my-session-with-spaces"),
    "N3": ("valid_name", "valid_name"),
    "N4": ("valid.name", "valid.name"),
    "N5": ("valid123", "valid123"),
    "N6": ("a--b", "a-b"),
    "N7": ("-a-", "a"),
    "N8": ("name\n", "name"),
    "N10": ("a" * 100, "a" * 64),
    "N11": ("x" * 63 + " y", "x" * 63),
    "N24": ("日本語", "日本語"),
    "N25": ("ünïcode", "unicode"),
}
"""A name and its stored form."""

REFUSED_NAMES: dict[str, tuple[str, str]] = {
    "N9": ("a\0b", INVALID),
    "N12": ("   ", EMPTY),
    "N12b": ("", EMPTY),
    "N13": ("---", EMPTY),
    "N14": ("!!!", EMPTY),
    "N15": ("../etc/passwd", INVALID),
    "N16": ("test/../parent", INVALID),
    "N17": ("feature/x", INVALID),
    "N18": ("a\\b", INVALID),
    "N19": ("..", INVALID),
    "N20": ("a..b", INVALID),
    "N21": (".", INVALID),
    "N22": (".hidden", INVALID),
    "N23": ("trailing.", INVALID),
    "R1": ("index", RESERVED),
    "R2": ("metadata", RESERVED),
    "R3": ("last_session", RESERVED),
    "R4": ("con", RESERVED),
    "R5": ("CON", RESERVED),
    "R6": ("nul", RESERVED),
    "R7": ("index ", RESERVED),
    "R8": ("Index", RESERVED),
    "R9": ("com5", RESERVED),
    "R10": ("lpt9", RESERVED),
    "R11": ("con.txt", RESERVED),
    "R12": ("index.json", RESERVED),
    "R13": ("site-packages", RESERVED),
}
"""A name and why it is refused."""

REFUSED_IDS: dict[str, str] = {
    "I1": "",
    "I2": "..",
    "I3": "a/b",
    "I4": "a\\b",
    "I5": "a\0b",
    "I6": "../x",
    "I7": "foo\\bar",
    "I8": "a b",
    "I9": "é",
    "I10": ".",
    "I12": "x" * 300,
    "R14": "index",
}
ACCEPTED_IDS: dict[str, str] = {
    "I11": "OK_1.2-3",
    "I15": "550e8400-e29b-41d4-a716-446655440000",
    "I19": "A_b-9" * 20,
}


@pytest.mark.parametrize("case", NAMES)
async def test_a_name_is_stored_in_its_expected_form(store: Store, case: str) -> None:
    given, kept = NAMES[case]
    journal = await store.create(opened(name=given))
    assert (await store.summary(journal.session)).name == kept
    assert await store.find(given) == await store.find(kept) == journal.session


@pytest.mark.parametrize("case", REFUSED_NAMES)
async def test_a_name_is_refused_for_the_right_reason(store: Store, case: str) -> None:
    given, why = REFUSED_NAMES[case]
    with pytest.raises(InvalidName) as refusal:
        await store.create(opened(name=given))
    words = f"{refusal.value} {refusal.value.hint}"
    assert (EMPTY if "empty" in words else RESERVED if "reserved" in words else INVALID) == why
    assert await store.sessions() == []


@pytest.mark.parametrize("case", REFUSED_IDS)
async def test_an_invalid_id_is_refused_by_every_method(store: Store, case: str) -> None:
    id = SessionId(REFUSED_IDS[case])
    kept = await store.create(opened())
    await kept.release()
    for attempt in (
        store.create(opened(), session=id),
        store.open(id),
        store.fork(id, at=1, opened=opened()),
        store.read(id),
        store.holder(id),
        store.summary(id),
        store.delete(id),
    ):
        with pytest.raises(InvalidId):
            await attempt
    assert [line.id for line in await store.sessions()] == [kept.session]


@pytest.mark.parametrize("case", ACCEPTED_IDS)
async def test_a_valid_id_is_used_unchanged(store: Store, case: str) -> None:
    id = SessionId(ACCEPTED_IDS[case])
    with pytest.raises(SessionNotFound):
        await store.open(id)
    assert (await store.create(opened(), session=id)).session == id


@pytest.mark.parametrize("number", STORIES)
async def test_the_case_has_its_expected_result(
    number: str, disk: SqliteStore, home: Home, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await STORIES[number](Stage(store=disk, home=home, clock=clock, patch=monkeypatch))


def test_no_case_is_missing() -> None:
    wanted = {"N": 26, "R": 14, "I": 19, "X": 31, "S": 10, "J": 10}
    numbers = {f"{group}{number}" for group, count in wanted.items() for number in range(1, count + 1)}
    assert numbers <= {*NAMES, *REFUSED_NAMES, *REFUSED_IDS, *ACCEPTED_IDS, *STORIES}
