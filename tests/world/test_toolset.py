"""Judged calls become operations on files, made directly or staged."""

from pathlib import Path

import pytest

from holdfast.core import Call, Json, JsonObject, Performed, call_id, digest_bytes
from holdfast.core.errors import InvalidInput, PathRefused, QuotaExceeded, StoreUnavailable, ToolFailed
from holdfast.world import WORLD_TOOLS, FolderWorld, MemoryWorld, Quota, StagedWorld, World, WorldToolset


class Bench:
    """A toolset with its worlds and the blobs it kept."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.staged = StagedWorld(world)
        self.blobs: dict[str, bytes] = {}
        self.toolset = WorldToolset(world, self.staged, keep=self.keep)

    async def keep(self, content: bytes) -> str:
        self.blobs[digest_bytes(content)] = content
        return digest_bytes(content)

    async def perform(self, operation: str, *, is_staged: bool = False, **arguments: Json) -> Performed:
        given: JsonObject = dict(arguments)
        call = Call(id=call_id(1, 1), operation=operation, arguments=given)
        return await self.toolset.perform(call, is_staged=is_staged)


@pytest.fixture(params=["memory", "folder"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(MemoryWorld() if request.param == "memory" else FolderWorld(tmp_path))


async def test_files_are_written_read_and_looked_at(bench: Bench) -> None:
    written = await bench.perform("world.write", path="/workspace/d/a.txt", content="grüße\n")
    assert written.result == len("grüße\n".encode())
    assert written.amount.bytes_written == written.result
    assert [(change.path, change.kind, change.is_staged) for change in written.changes] == [
        ("d/a.txt", "created", False)
    ]
    assert (await bench.perform("world.append", path="d/a.txt", content="more")).result == 4
    assert (await bench.perform("world.read", path="/app/d/a.txt")).result == "grüße\nmore"
    assert (await bench.perform("world.list")).result == ["d/a.txt"]
    assert (await bench.perform("world.list", pattern="/workspace/d/*")).result == ["d/a.txt"]
    assert (await bench.perform("world.exists", path="d")).result is True
    stat = (await bench.perform("world.stat", path="d/a.txt")).result
    assert isinstance(stat, dict)
    assert set(stat) == {"path", "kind", "size", "modified_ms", "mode"}
    assert (await bench.perform("world.entries", path="d")).result == [stat]
    assert (await bench.perform("world.search", query="mo.e")).result == [
        {"path": "d/a.txt", "line": 2, "text": "more"}
    ]
    assert (await bench.perform("world.fingerprint", path="d/a.txt")).result == digest_bytes(
        "grüße\nmore".encode()
    )
    assert (await bench.perform("world.fingerprint")).result == bench.world.fingerprint()


async def test_folders_are_made_moved_and_deleted(bench: Bench) -> None:
    assert (await bench.perform("world.make_folder", path="d/e")).result is None
    await bench.perform("world.write", path="d/e/f", content="1")
    moved = await bench.perform("world.move", source="d", destination="g")
    assert [change.path for change in moved.changes] == ["d/e/f", "g/e/f"]
    deleted = await bench.perform("world.delete", path="g", recursive=True)
    assert [change.kind for change in deleted.changes] == ["deleted"]
    assert bench.world.files() == ()


async def test_bytes_travel_as_base64(bench: Bench) -> None:
    await bench.perform("world.write", path="b", content="AP8=", encoding="base64")
    assert bench.world.read("b") == b"\x00\xff"
    assert (await bench.perform("world.read", path="b", encoding="base64")).result == "AP8="
    with pytest.raises(InvalidInput):
        await bench.perform("world.read", path="b")
    with pytest.raises(InvalidInput):
        await bench.perform("world.write", path="b", content="no base64!", encoding="base64")


async def test_a_staged_write_leaves_the_base_alone_and_keeps_its_content(bench: Bench) -> None:
    bench.world.write("a", b"old")
    performed = await bench.perform("world.write", is_staged=True, path="a", content="new")
    (change,) = performed.changes
    assert (change.is_staged, change.before, change.after) == (
        True,
        digest_bytes(b"old"),
        digest_bytes(b"new"),
    )
    assert bench.blobs[change.after or ""] == b"new"
    assert bench.world.read("a") == b"old"
    assert (await bench.perform("world.read", path="a")).result == "new"


async def test_a_change_to_a_staged_file_is_staged_as_well(bench: Bench) -> None:
    await bench.perform("world.write", is_staged=True, path="a", content="one")
    performed = await bench.perform("world.append", path="a", content=" two")
    assert performed.changes[0].is_staged
    assert not bench.world.exists("a")
    assert (await bench.perform("world.read", path="a")).result == "one two"


async def test_a_guest_sees_and_withdraws_its_proposals_and_has_no_way_to_commit(bench: Bench) -> None:
    await bench.perform("world.write", is_staged=True, path="a", content="one\n")
    await bench.perform("world.write", is_staged=True, path="b", content="two\n")
    proposals = (await bench.perform("world.proposals")).result
    assert isinstance(proposals, list)
    assert proposals[0] == {
        "path": "a",
        "kind": "created",
        "diff": "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+one\n",
    }
    assert (await bench.perform("world.withdraw", paths=["a"])).result == ["a"]
    assert [proposal.path for proposal in bench.staged.proposals()] == ["b"]
    assert not [tool.name for tool in WORLD_TOOLS if "commit" in tool.name]
    with pytest.raises(ToolFailed):
        await bench.perform("world.commit")


async def test_troubles_of_files_are_the_ordinary_errors(bench: Bench) -> None:
    with pytest.raises(FileNotFoundError):
        await bench.perform("world.read", path="missing")
    with pytest.raises(PathRefused):
        await bench.perform("world.read", path="../x")
    with pytest.raises(PathRefused):
        await bench.perform("world.read")
    with pytest.raises(InvalidInput):
        await bench.perform("world.write", path="a")
    with pytest.raises(InvalidInput):
        await bench.perform("world.read", path="a", follow=True)
    with pytest.raises(InvalidInput):
        await bench.perform("world.read", path=7)


@pytest.mark.parametrize("quota", [Quota(bytes=10), Quota(files=1)])
async def test_a_full_workspace_is_an_ordinary_os_error(tmp_path: Path, quota: Quota) -> None:
    bench = Bench(FolderWorld(tmp_path, quota=quota))
    await bench.perform("world.write", path="a", content="12345678")
    with pytest.raises(OSError) as caught:
        await bench.perform("world.write", path="b", content="12345678")
    assert isinstance(caught.value, QuotaExceeded)
    assert bench.world.files() == ("a",)
    await bench.perform("world.write", path="a", content="1")


def test_every_tool_declares_the_roles_of_its_arguments() -> None:
    for tool in WORLD_TOOLS:
        properties = tool.parameters["properties"]
        assert isinstance(properties, dict)
        assert tool.roles is not None
        assert tool.roles.keys() == properties.keys()
    not_idempotent = {tool.verb for tool in WORLD_TOOLS if not tool.is_idempotent}
    assert not_idempotent == {"append", "move"}


async def test_content_that_cannot_be_stored_is_not_staged() -> None:
    async def broken(content: bytes) -> str:
        raise StoreUnavailable("the disk is gone")

    world = MemoryWorld({"a": b"1"})
    staged = StagedWorld(world)
    toolset = WorldToolset(world, staged, keep=broken)
    for operation, arguments in (
        ("world.write", {"path": "a", "content": "2"}),
        ("world.append", {"path": "a", "content": "2"}),
        ("world.move", {"source": "a", "destination": "b"}),
    ):
        given: JsonObject = dict(arguments)
        with pytest.raises(StoreUnavailable):
            await toolset.perform(
                Call(id=call_id(1, 1), operation=operation, arguments=given), is_staged=True
            )
    assert staged.staged_paths() == ()


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 7, 100])
async def test_f01_consecutive_pieces_of_a_text_join_to_the_whole(bench: Bench, length: int) -> None:
    text = "aé€😀\n" * 5
    await bench.perform("world.write", path="a.txt", content=text)
    pieces = [
        (await bench.perform("world.read", path="a.txt", offset=offset, length=length)).result
        for offset in range(0, len(text.encode()), length)
    ]
    assert "".join(map(str, pieces)) == text


async def test_f01_a_piece_of_bytes_is_exact_and_a_piece_past_the_end_is_empty(bench: Bench) -> None:
    await bench.perform("world.write", path="a", content="AAECAwQF", encoding="base64")
    piece = await bench.perform("world.read", path="a", encoding="base64", offset=2, length=3)
    assert piece.result == "AgME"
    assert (await bench.perform("world.read", path="a", encoding="base64", offset=4)).result == "BAU="
    assert (await bench.perform("world.read", path="a", offset=99)).result == ""
