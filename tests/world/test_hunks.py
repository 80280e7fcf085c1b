"""Accepting hunks: all of them is the whole commit, none is nothing, and any subset is what `git apply` makes of that part of the diff."""

import random
import subprocess
from pathlib import Path

import pytest

from holdfast.core.errors import CommitConflict, InvalidInput
from holdfast.world import (
    FolderWorld,
    HunkDecision,
    MemoryWorld,
    Proposal,
    StagedWorld,
    hunks_of,
    proposal_digest,
    unit_count,
)

LINES = [
    "",
    "a",
    "b",
    "c",
    "return x",
    "}",
    "  indented",
    "tab\there",
    "form\ffeed",
    "cr\r",
    "@@ -1,2 +1,2 @@",
    "--- a/x",
    "+++ b/x",
]


def random_text(rng: random.Random) -> list[str]:
    return [rng.choice(LINES) for _ in range(rng.randint(1, 60))]


def edited(rng: random.Random, lines: list[str]) -> list[str]:
    made = list(lines)
    for _ in range(rng.randint(1, 6)):
        place = rng.randint(0, len(made))
        match rng.randrange(3):
            case 0:
                made[place:place] = random_text(rng)[: rng.randint(1, 3)]
            case 1:
                del made[place : place + rng.randint(1, 3)]
            case _:
                made[place : place + 1] = [f"changed {rng.random()}"]
    return made


def joined(rng: random.Random, lines: list[str]) -> str:
    return "\n".join(lines) + ("\n" if rng.random() < 0.7 else "")


def decision(proposal: Proposal, *accepted: int, rejected: tuple[int, ...] = ()) -> HunkDecision:
    return HunkDecision(
        path=proposal.path, shown=proposal_digest(proposal), accepted=accepted, rejected=rejected
    )


def apply(staged: StagedWorld, *decisions: HunkDecision) -> None:
    staged.apply_split(staged.split(decisions))


def patch_of(proposal: Proposal, chosen: set[int]) -> str:
    """The diff with the chosen hunks alone, renumbered as if nothing else was changed."""
    text, moved = f"--- a/{proposal.path}\n+++ b/{proposal.path}\n", 0
    for hunk in hunks_of(proposal):
        if hunk.number in chosen:
            old, new = len(hunk.old), len(hunk.new)
            before, after = hunk.start + bool(old), hunk.start + moved + bool(new)
            text += "\n".join([f"@@ -{before},{old} +{after},{new} @@", *hunk.lines[1:]]) + "\n"
            moved += new - old
    return text


@pytest.mark.parametrize("seed", range(3))
def test_any_subset_of_hunks_is_what_git_apply_makes_of_that_part_of_the_diff(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    base = MemoryWorld()
    staged = StagedWorld(base)
    for number in range(80):
        lines = random_text(rng)
        text, other = joined(rng, lines), joined(rng, edited(rng, lines))
        base.write(f"f{number}", text.encode())
        (tmp_path / f"f{number}").write_bytes(text.encode())
        if other != text:
            staged.write(f"f{number}", other.encode())
    proposals = [each for each in staged.proposals() if each.diff]
    assert sum(unit_count(each) > 1 for each in proposals) > 20
    wanted = {each.path: staged.read(each.path) for each in proposals}
    decisions, patches, left = [], [], {}
    for proposal in proposals:
        numbers = set(range(1, unit_count(proposal) + 1))
        accepted = {each for each in numbers if rng.random() < 0.5}
        rejected = {each for each in numbers - accepted if rng.random() < 0.5}
        decisions.append(decision(proposal, *sorted(accepted), rejected=tuple(sorted(rejected))))
        if accepted:
            patches.append(patch_of(proposal, accepted))
        left[proposal.path] = numbers - accepted - rejected
    apply(staged, *decisions)
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=tmp_path,
        input="".join(patches).encode(),
        check=True,
        capture_output=True,
    )
    for path in wanted:
        assert base.read(path) == (tmp_path / path).read_bytes(), path
    assert set(staged.staged_paths()) == {path for path, numbers in left.items() if numbers}
    for proposal in staged.proposals():
        rest = decision(proposal, *range(1, unit_count(proposal) + 1))
        is_all_open = not any(d.accepted or d.rejected for d in decisions if d.path == proposal.path)
        is_none_rejected = not any(d.rejected for d in decisions if d.path == proposal.path)
        apply(staged, rest)
        if is_all_open or is_none_rejected:
            assert base.read(proposal.path) == wanted[proposal.path], "accepting the rest is the whole commit"


def staged_file(before: str | None, after: str | None) -> tuple[StagedWorld, Proposal]:
    staged = StagedWorld(MemoryWorld({} if before is None else {"a": before.encode()}))
    if after is None:
        staged.delete("a")
    else:
        staged.write("a", after.encode())
    [proposal] = staged.proposals()
    return staged, proposal


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, "x\n"), ("x\n", None), (None, ""), ("", None), ("a\0b", "a\0c"), ("x", "x\n"), ("x\n", "")],
)
def test_a_file_without_several_hunks_is_accepted_or_rejected_as_a_whole(
    before: str | None, after: str | None
) -> None:
    staged, proposal = staged_file(before, after)
    assert unit_count(proposal) == 1
    apply(staged, decision(proposal, 1))
    assert staged.base.exists("a") == (after is not None)
    assert after is None or staged.base.read("a") == after.encode()
    staged, proposal = staged_file(before, after)
    apply(staged, decision(proposal, rejected=(1,)))
    assert staged.staged_paths() == ()
    assert staged.base.exists("a") == (before is not None)


BEFORE = "".join(f"{number}\n" for number in range(40))
AFTER = BEFORE.replace("3\n", "three\n", 1).replace("30\n", "thirty\n", 1)


def test_a_file_that_changed_since_is_a_conflict_and_nothing_happens() -> None:
    staged, proposal = staged_file(BEFORE, AFTER)
    staged.base.write("a", b"somebody else")
    with pytest.raises(CommitConflict):
        apply(staged, decision(proposal, 1))
    assert staged.base.read("a") == b"somebody else"
    assert staged.read("a") == AFTER.encode()


def test_a_change_of_the_base_that_the_diff_does_not_show_is_a_conflict() -> None:
    staged, _ = staged_file(BEFORE, AFTER)
    staged.base.write("a", BEFORE.replace("20\n", "twenty\n").encode())
    [shown] = staged.proposals()
    with pytest.raises(CommitConflict):
        apply(staged, decision(shown, 1))
    assert staged.read("a") == AFTER.encode()


def test_a_proposal_that_changed_since_it_was_shown_is_a_conflict() -> None:
    staged, proposal = staged_file(BEFORE, AFTER)
    staged.write("a", AFTER.replace("10\n", "ten\n").encode())
    with pytest.raises(CommitConflict, match="changed since it was shown"):
        apply(staged, decision(proposal, 1))


@pytest.mark.parametrize("numbers", [(0,), (3,), (1, 1)])
def test_a_hunk_that_does_not_exist_or_is_named_twice_is_refused(numbers: tuple[int, ...]) -> None:
    staged, proposal = staged_file(BEFORE, AFTER)
    with pytest.raises(InvalidInput, match="has the hunks 1 to 2"):
        apply(staged, decision(proposal, *numbers))


def test_one_conflict_among_many_files_changes_none(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    world = FolderWorld(tmp_path / "w")
    staged = StagedWorld(world)
    for name in ("a", "b"):
        world.write(name, BEFORE.encode())
        staged.write(name, AFTER.encode())
    decisions = [decision(each, 1) for each in staged.proposals()]
    split = staged.split(decisions)
    world.write("b", b"somebody else")
    with pytest.raises(CommitConflict):
        staged.apply_split(split)
    assert world.read("a") == BEFORE.encode()
    assert staged.read("a") == AFTER.encode()
