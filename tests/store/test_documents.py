"""Documents that several processes change as a whole, in a file and in a store that machines share."""

import asyncio
from pathlib import Path

import pytest
from tests.store.conftest import BACKENDS

from holdfast.core import FakeClock
from holdfast.store import Document, FileDocument, SharedDocument, WorkStore

PLACES = ("file", *(name for name in BACKENDS if name != "sqlite"))


@pytest.mark.parametrize("place", PLACES)
async def test_changes_of_two_processes_are_both_kept(
    place: str, tmp_path: Path, clock: FakeClock, request: pytest.FixtureRequest
) -> None:
    if place == "file":
        await change_from_two(FileDocument(tmp_path / "notes.json"), FileDocument(tmp_path / "notes.json"))
        return
    async with BACKENDS[place](tmp_path, clock, request) as store:
        assert isinstance(store, WorkStore)
        await change_from_two(SharedDocument(store, "notes"), SharedDocument(store, "notes"))
        assert (await store.document("other")).content is None
        assert not await store.put_document("notes", b"from an old version", version=1)
        assert not await store.put_document("notes", b"as if there were none", version=0)


async def change_from_two(one: Document, other: Document) -> None:
    with pytest.raises(FileNotFoundError):
        one.read()

    def add(document: Document, word: bytes) -> int:
        document.change(lambda: read(document) + word)
        return len(read(document))

    words = (b"a", b"b", b"c", b"d")
    lengths = await asyncio.gather(
        *(
            document.update(lambda document=document, word=word: add(document, word))  # type: ignore[misc]
            for word in words
            for document in (one, other)
        )
    )
    assert sorted(lengths) == list(range(1, 9)), "each change saw those before it"
    await one.refresh()
    await other.refresh()
    assert one.read() == other.read()
    assert sorted(one.read()) == sorted(b"aabbccdd")
    with pytest.raises(ZeroDivisionError):
        await one.update(lambda: 1 / 0)
    assert await one.update(lambda: "nothing to change") == "nothing to change"


def read(document: Document) -> bytes:
    try:
        return document.read()
    except FileNotFoundError:
        return b""
