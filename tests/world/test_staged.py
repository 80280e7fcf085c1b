"""Staged changes: seen by reads, shown as diffs, committed all or nothing, and only by the host."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import Change, digest_bytes, values
from holdfast.core.errors import CommitConflict, InvalidInput, PathRefused, QuotaExceeded
from holdfast.world import FolderWorld, MemoryWorld, Quota, StagedWorld, UndoJournal, World
from holdfast.world.staging import proposals

BASES: dict[str, Callable[[Path], World]] = {"memory": lambda folder: MemoryWorld(), "folder": FolderWorld}


@pytest.fixture(params=BASES)
def base(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    (tmp_path / "base").mkdir()
    world = BASES[request.param](tmp_path / "base")
    world.write("kept", b"kept\n")
    world.write("d/changed", b"one\ntwo\n", mode=0o755)
    world.write("d/gone", b"gone\n")
    return world


@pytest.fixture
def staged(base: World, tmp_path: Path) -> StagedWorld:
    return StagedWorld(base, undo=UndoJournal(tmp_path / "undo"))


def stage_all(staged: StagedWorld) -> None:
    staged.write("d/changed", b"one\nTWO\n")
    staged.delete("d/gone")
    staged.write("new/file", b"new\n")


def tree(world: World) -> dict[str, tuple[bytes, int]]:
    return {path: (world.read(path), world.stat(path).mode) for path in world.files()}


def test_reads_see_the_overlay_and_the_base_stays_as_it_was(base: World, staged: StagedWorld) -> None:
    before, fingerprint = tree(base), base.fingerprint()
    stage_all(staged)
    assert staged.read("d/changed") == b"one\nTWO\n"
    with pytest.raises(FileNotFoundError):
        staged.read("d/gone")
    assert staged.list() == ("d/changed", "kept", "new/file")
    assert [hit.path for hit in staged.search("TWO")] == ["d/changed"]
    assert staged.fingerprint("d/changed") != base.fingerprint("d/changed")
    assert staged.fingerprint() != base.fingerprint() == fingerprint
    assert staged.fingerprint("kept") == base.fingerprint("kept")
    assert tree(base) == before


def test_writing_after_deleting_revives_a_file(staged: StagedWorld) -> None:
    staged.delete("d/gone")
    staged.write("d/gone", b"back\n")
    assert staged.read("d/gone") == b"back\n"
    assert [(each.path, each.kind) for each in staged.proposals()] == [("d/gone", "modified")]


def test_a_file_written_after_deleting_has_not_the_mode_of_the_deleted_one(
    base: World, staged: StagedWorld
) -> None:
    for content in (b"one\ntwo\n", b"other"):
        base.write("d/changed", b"one\ntwo\n", mode=0o755)
        staged.delete("d/changed")
        staged.append("d/changed", content)
        assert staged.stat("d/changed").mode == 0o644
        staged.commit()
        assert (base.read("d/changed"), base.stat("d/changed").mode) == (content, 0o644)


def test_a_file_written_as_it_was_into_a_removed_folder_is_there(base: World, staged: StagedWorld) -> None:
    base.make_folder("d/empty")
    staged.delete("d", recursive=True)
    staged.write("d/gone", b"gone\n")
    assert staged.read("d/gone") == b"gone\n"
    assert [each.path for each in staged.entries("d")] == ["d/gone"]
    staged.commit()
    assert [each.path for each in base.entries("d")] == ["d/gone"]


def test_a_file_whose_deletion_is_rejected_is_there_though_its_folder_was_removed(
    staged: StagedWorld,
) -> None:
    staged.delete("d", recursive=True)
    staged.reject(["d/gone"])
    assert staged.read("d/gone") == b"gone\n"
    assert [each.path for each in staged.entries("d")] == ["d/gone"]


def test_writing_the_content_of_the_base_makes_no_proposal(staged: StagedWorld) -> None:
    staged.write("kept", b"other")
    staged.write("kept", b"kept\n")
    staged.write("fresh", b"")
    staged.delete("fresh")
    assert staged.proposals() == ()


def test_two_writes_of_one_file_are_one_effect(base: World, staged: StagedWorld) -> None:
    staged.write("d/changed", b"first")
    staged.write("d/changed", b"second")
    assert len(staged.proposals()) == 1
    (change,) = staged.commit()
    assert (change.before, change.after) == (digest_bytes(b"one\ntwo\n"), digest_bytes(b"second"))
    assert base.read("d/changed") == b"second"


def test_a_commit_makes_writes_and_deletions_and_keeps_modes(base: World, staged: StagedWorld) -> None:
    stage_all(staged)
    changes = staged.commit()
    assert [(change.path, change.kind) for change in changes] == [
        ("d/changed", "modified"),
        ("d/gone", "deleted"),
        ("new/file", "created"),
    ]
    assert base.files() == ("d/changed", "kept", "new/file")
    assert base.stat("d/changed").mode == 0o755
    assert staged.proposals() == ()
    assert staged.fingerprint() == base.fingerprint()


def test_a_commit_of_some_leaves_the_others_staged(base: World, staged: StagedWorld) -> None:
    stage_all(staged)
    assert [change.path for change in staged.commit(["d"])] == ["d/changed", "d/gone"]
    assert [proposal.path for proposal in staged.proposals()] == ["new/file"]
    assert not base.exists("new")
    with pytest.raises(InvalidInput):
        staged.commit(["kept"])


def test_a_changed_base_is_a_conflict_that_names_the_files_and_changes_nothing(
    base: World, staged: StagedWorld
) -> None:
    stage_all(staged)
    base.write("d/changed", b"somebody else")
    base.write("new/file", b"somebody else")
    before = tree(base)
    with pytest.raises(CommitConflict) as caught:
        staged.commit()
    assert caught.value.paths == ("d/changed", "new/file")
    assert tree(base) == before
    assert len(staged.proposals()) == 3


def test_a_file_that_vanished_is_a_conflict(base: World, staged: StagedWorld) -> None:
    stage_all(staged)
    base.delete("d/gone")
    with pytest.raises(CommitConflict) as caught:
        staged.commit()
    assert caught.value.paths == ("d/gone",)


@pytest.mark.parametrize("kind", BASES)
def test_trouble_in_the_middle_of_a_commit_puts_everything_back(tmp_path: Path, kind: str) -> None:
    (tmp_path / "base").mkdir()
    quota = Quota(bytes=120)
    base = MemoryWorld(quota=quota) if kind == "memory" else FolderWorld(tmp_path / "base", quota=quota)
    base.write("a", b"12345", mode=0o700)
    base.write("gone", b"12345")
    staged = StagedWorld(base, undo=UndoJournal(tmp_path / "undo"))
    staged.delete("gone")
    staged.write("a", b"small")
    staged.write("b/c", b"small")
    staged.write("z", b"too large " * 10)
    base.write("filler", b"came in between, 20.")
    before = tree(base)
    with pytest.raises(QuotaExceeded):
        staged.commit()
    assert tree(base) == before
    assert not base.exists("b")
    assert len(staged.proposals()) == 4
    assert list((tmp_path / "undo").iterdir()) == []


def test_a_file_takes_the_place_of_a_folder_and_a_folder_that_of_a_file(
    base: World, staged: StagedWorld
) -> None:
    staged.delete("d", recursive=True)
    staged.write("d", b"a file")
    staged.delete("kept")
    staged.write("kept/inner", b"a file in a folder")
    expected = tree(staged)
    staged.commit()
    assert tree(base) == expected
    assert base.files() == ("d", "kept/inner")


def test_a_committed_folder_deletion_removes_the_folder(base: World, staged: StagedWorld) -> None:
    base.make_folder("d/empty/deep")
    staged.delete("d", recursive=True)
    assert not staged.exists("d")
    staged.commit()
    assert not base.exists("d")


def test_rejecting_drops_proposals_and_nothing_else(base: World, staged: StagedWorld) -> None:
    before = tree(base)
    stage_all(staged)
    assert staged.reject(["new/file"]) == ("new/file",)
    assert staged.reject() == ("d/changed", "d/gone")
    assert staged.proposals() == ()
    assert tree(base) == tree(staged) == before
    staged.write("again", b"1")
    assert staged.read("again") == b"1"


def test_staged_changes_have_a_size_limit(base: World) -> None:
    staged = StagedWorld(base, max_bytes=10)
    staged.write("a", b"12345678")
    with pytest.raises(QuotaExceeded):
        staged.write("b", b"12345678")
    staged.write("a", b"1234567890")
    with pytest.raises(QuotaExceeded):
        staged.write("a", b"12345678901")
    assert staged.read("a") == b"1234567890"


def test_the_overlay_is_built_again_from_recorded_changes(base: World, staged: StagedWorld) -> None:
    blobs: dict[str, bytes] = {}
    record: list[Change] = []

    def note(*changes: Change) -> None:
        record.extend(changes)
        for change in changes:
            if change.after and staged.exists(change.path):
                blobs[change.after] = staged.read(change.path)

    note(staged.write("d/changed", b"first"))
    note(staged.write("d/changed", b"second"))
    note(*staged.delete("d/gone"))
    note(staged.write("new/file", b"new"))
    note(staged.write("withdrawn", b"1"), staged.write("kept", b"withdrawn as well"))
    note(*staged.withdraw(["withdrawn", "kept"]))
    note(*staged.move("new/file", "newer"))
    again = StagedWorld(base)
    again.restage(record, blobs.__getitem__)
    assert again.proposals() == staged.proposals()
    assert tree(again) == tree(staged)
    again.commit()
    third = StagedWorld(base)
    third.restage(record, blobs.__getitem__)
    assert third.proposals() == ()


def test_a_change_of_mode_alone_is_built_again_and_known_once_it_is_made(
    base: World, staged: StagedWorld
) -> None:
    base.write("script", b"kept\n", mode=0o755)
    moved = staged.move("script", "kept")  # the same content with another mode
    same = staged.write("d/gone", b"gone\n")  # and one that changes nothing at all
    again = StagedWorld(base)
    again.restage([*moved, same], lambda digest: b"kept\n")
    assert again.staged_paths() == ("kept", "script")
    assert again.stat("kept").mode == 0o755
    assert [change.path for change in (*moved, same) if again.is_committed(change)] == []
    staged.commit()
    assert base.stat("kept").mode == 0o755
    assert {change.path for change in (*moved, same) if again.is_committed(change)} == {"kept", "script"}
    third = StagedWorld(base)
    third.restage([*moved, same], lambda digest: b"kept\n")
    assert third.staged_paths() == ()


def test_a_file_added_to_a_removed_folder_is_hidden_and_survives_the_commit(
    base: World, staged: StagedWorld
) -> None:
    staged.delete("d", recursive=True)
    base.write("d/late", b"late\n")
    assert staged.list() == staged.files() == ("kept",)
    assert not staged.exists("d/late")
    with pytest.raises(FileNotFoundError):
        staged.read("d/late")
    assert staged.fingerprint("d/late") == ""
    assert staged.search("late") == ()
    without = MemoryWorld({"kept": b"kept\n"})
    assert staged.fingerprint() == without.fingerprint()
    with pytest.raises(FileNotFoundError):
        staged.delete("d/late")
    staged.commit()
    assert base.files() == staged.files() == ("d/late", "kept")


def test_writing_over_a_file_added_to_a_removed_folder_is_a_modification(
    base: World, staged: StagedWorld
) -> None:
    staged.delete("d", recursive=True)
    base.write("d/late", b"late\n")
    staged.write("d/late", b"ours\n")
    assert staged.read("d/late") == b"ours\n"
    assert staged.files() == ("d/late", "kept")
    staged.commit()
    assert base.read("d/late") == b"ours\n"


def test_a_proposal_is_a_unified_diff(staged: StagedWorld) -> None:
    stage_all(staged)
    changed, gone, new = staged.proposals()
    assert changed.diff == "--- a/d/changed\n+++ b/d/changed\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"
    assert (gone.kind, gone.diff) == ("deleted", "--- a/d/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n")
    assert (new.kind, new.diff) == ("created", "--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+new\n")


def test_a_binary_file_is_described(staged: StagedWorld) -> None:
    staged.write("kept", b"\x00\x01\x02")
    (proposal,) = staged.proposals()
    assert proposal.is_binary
    assert "5 bytes" in proposal.diff
    assert "3 bytes" in proposal.diff


def test_a_change_of_mode_is_shown_and_git_applies_it(tmp_path: Path) -> None:
    base = FolderWorld(tmp_path)
    base.write("script", b"#!/bin/sh\n", mode=0o644)
    base.write("both", b"one\n", mode=0o644)
    staged = StagedWorld(base)
    staged.write("script", b"#!/bin/sh\n", mode=0o755)
    staged.write("both", b"two\n", mode=0o755)
    both, script = staged.proposals()
    assert "old mode 100644\nnew mode 100755\n" in script.diff
    patch = both.diff + script.diff
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True, capture_output=True)
    assert [base.stat(name).mode for name in ("both", "script")] == [0o755, 0o755]
    assert base.read("both") == b"two\n"


def test_f08_every_staged_file_has_a_diff_and_git_applies_it(tmp_path: Path) -> None:
    base = FolderWorld(tmp_path)
    contents = {"empty": b"", "script": b"#!/bin/sh\n", "text": b"one\n", "emptied": b"one\n", "filled": b""}
    for name, content in contents.items():
        base.write(f"gone/{name}", content, mode=0o755 if name == "script" else 0o644)
        base.write(name, content)
    staged = StagedWorld(base)
    for name, content in contents.items():
        staged.delete(f"gone/{name}")
        staged.write(f"new/{name}", content)
    staged.write("emptied", b"")
    staged.write("script", contents["script"], mode=0o755)
    staged.write("filled", b"two\n")
    patch = ""
    for proposal in staged.proposals():
        assert proposal.path in proposal.diff, proposal
        patch += proposal.diff
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True, capture_output=True)
    assert {path: base.read(path) for path in base.files()} == {
        path: staged.read(path) for path in staged.files()
    }


def test_a_rename_is_seen(staged: StagedWorld) -> None:
    staged.move("d/gone", "moved")
    gone, moved = staged.proposals()
    assert (gone.path, gone.kind) == ("d/gone", "deleted")
    assert (moved.path, moved.kind, moved.renamed_from) == ("moved", "created", "d/gone")


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "ü", "x\fy", "z\r"]), max_size=12).map("\n".join)


@settings(deadline=None, max_examples=40)
@given(old=LINES, new=LINES, filler=st.integers(0, 20))
def test_git_applies_the_diffs(
    tmp_path_factory: pytest.TempPathFactory, old: str, new: str, filler: int
) -> None:
    folder = tmp_path_factory.mktemp("git")
    head = "".join(f"line {number}\n" for number in range(filler))
    before, after = f"{head}{old}\n{head}".encode(), f"{head}{new}\n{head}x".encode()
    base = FolderWorld(folder)
    base.write("d/f", before)
    staged = StagedWorld(base)
    staged.write("d/f", after)
    staged.write("created", after)
    patch = "".join(proposal.diff for proposal in staged.proposals())
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=folder,
        input=patch.encode(),
        check=True,
        capture_output=True,
    )
    assert base.read("d/f") == after
    assert base.read("created") == after


def test_the_diff_of_a_large_rewrite_is_complete_and_applies(tmp_path: Path) -> None:
    base = FolderWorld(tmp_path)
    before = "".join(f"{number}\n" for number in range(8000)).encode()
    after = b"0\n1\n" + "".join(f"{number * 7 % 8000}\n" for number in range(2, 7990)).encode() + b"7999\n"
    base.write("f", before)
    staged = StagedWorld(base)
    staged.write("f", after)
    patch = staged.proposals()[0].diff
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True, capture_output=True)
    assert base.read("f") == after


def test_a_base_that_is_refused_by_now_stops_neither_resuming_nor_rejecting(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    base = FolderWorld(tmp_path / "base")
    base.write("a", b"old\n")
    staged = StagedWorld(base)
    change = staged.write("a", b"new\n")
    (tmp_path / "elsewhere").hardlink_to(tmp_path / "base" / "a")
    again = StagedWorld(base)
    again.restage([change], lambda digest: b"new\n")
    assert again.staged_paths() == ("a",)
    assert [proposal.path for proposal in again.proposals()] == ["a"]
    with pytest.raises(PathRefused):
        again.commit()
    assert again.reject() == ("a",)


def test_rejecting_a_folder_keeps_paths_with_the_same_prefix(staged: StagedWorld) -> None:
    for path in ("a/x", "ab", "a.txt"):
        staged.write(path, b"")
    assert staged.reject(["a"]) == ("a/x",)
    assert [proposal.path for proposal in staged.proposals()] == ["a.txt", "ab"]


def test_a_change_that_is_too_large_to_compare_is_described(
    monkeypatch: pytest.MonkeyPatch, staged: StagedWorld
) -> None:
    monkeypatch.setattr("holdfast.world.staging.line_diff.MAX_LINES", 1)
    staged.write("kept", b"1\n2\n3\n")
    (proposal,) = staged.proposals()
    assert proposal.diff.startswith("large file kept: 5 bytes, ")
    assert "-> 6 bytes, " in proposal.diff


@pytest.mark.parametrize(
    ("content", "text_bytes"),
    [(b"abc\n", 4), ("\u00e9\u00fc\n".encode(), 3), ("\u4e2d\n".encode(), 4), ("abc\U0001f600".encode(), 16)],
)
def test_a_text_that_takes_too_much_memory_is_described(
    monkeypatch: pytest.MonkeyPatch, staged: StagedWorld, content: bytes, text_bytes: int
) -> None:
    monkeypatch.setattr(values, "_PIECE", 1)
    staged.write("new", content)
    monkeypatch.setattr(proposals, "MAX_TEXT_BYTES", text_bytes)
    (proposal,) = staged.proposals()
    assert proposal.diff.startswith("--- /dev/null\n+++ b/new\n")
    monkeypatch.setattr(proposals, "MAX_TEXT_BYTES", text_bytes - 1)
    (proposal,) = staged.proposals()
    assert proposal.diff.startswith("large file new: nothing -> ")
    assert not proposal.is_binary


@pytest.mark.parametrize("content", [b"a\0", b"\xff", b"a\xe4\xb8", b"\xed\xa0\x80"])
def test_what_is_not_utf_8_is_binary(staged: StagedWorld, content: bytes) -> None:
    staged.write("new", content)
    (proposal,) = staged.proposals()
    assert proposal.is_binary


def test_the_kinds_of_staged_changes_are_those_of_the_proposals(staged: StagedWorld) -> None:
    stage_all(staged)
    assert staged.staged_kinds() == {each.path: each.kind for each in staged.proposals()}


def test_a_file_can_take_the_place_of_a_deleted_folder_after_a_restart(
    base: World, staged: StagedWorld
) -> None:
    deleted = staged.delete("d", recursive=True)
    again = StagedWorld(base)
    again.restage(deleted, lambda _: b"")
    assert not again.exists("d")
    again.write("d", b"a file")
    assert again.read("d") == b"a file"
    again.reject()
    assert again.read("d/gone") == b"gone\n"


def test_a_folder_whose_place_a_file_took_stays_removed_after_a_restart() -> None:
    base = MemoryWorld({"d/a": b"1\n", "d/e/b": b"2\n"})
    staged = StagedWorld(base)
    record = [*staged.delete("d", recursive=True), staged.write("d", b"file\n")]
    again = StagedWorld(base)
    again.restage(record, lambda _: b"file\n")
    assert again.read("d") == b"file\n"
    again.delete("d")
    assert not again.exists("d")
    again.write("d", b"again\n")
    assert again.read("d") == b"again\n"
