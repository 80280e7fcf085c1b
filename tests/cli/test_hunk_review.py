"""The diff viewer: which hunk is looked at, what the screen shows, and what is decided; then the same at a terminal."""

from pathlib import Path

import pytest
from tests.cli.commands import holdfast
from tests.cli.terminals import prepared, runs, terminal

from holdfast.cli.terminal.wrap import cell_width
from holdfast.cli.views.diff_lines import diff_lines
from holdfast.cli.views.hunk_review import HunkReview
from holdfast.world import MemoryWorld, Proposal, StagedWorld

BEFORE = "".join(f"line {number}\n" for number in range(60))
AFTER = BEFORE.replace("line 3\n", "line three\n").replace("line 30\n", "line thirty\n")
HEIGHT = 20


def proposals(**files: tuple[str, str | None]) -> tuple[Proposal, ...]:
    staged = StagedWorld(
        MemoryWorld({name: before.encode() for name, (before, _) in files.items() if before})
    )
    for name, (_, after) in files.items():
        if after is None:
            staged.delete(name)
        else:
            staged.write(name, after.encode())
    return staged.proposals()


def test_the_words_that_changed_in_a_line_are_marked() -> None:
    [proposal] = proposals(a=("total = price * count\nsame\n", "total = price * number + tax\nsame\n"))
    marked = {
        line.kind: [piece.text for piece in line.pieces if piece.is_changed] for line in diff_lines(proposal)
    }
    assert marked["removed"] == ["count"]
    assert "".join(marked["added"]) == "number + tax"
    assert marked["context"] == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("abc\n", "xyz 123\n"),
        ("a\nb\n", "a1\n"),
        ("x" * 600 + "\n", "x" * 599 + "y\n"),
        ("--- a/b\n", "-- a/b\n"),
    ],
)
def test_every_letter_of_a_line_is_shown_whether_words_are_marked_or_not(before: str, after: str) -> None:
    [proposal] = proposals(a=(before, after))
    assert [line.text for line in diff_lines(proposal)] == proposal.diff.splitlines()


@pytest.mark.parametrize(
    ("file", "note"),
    [
        (("", ""), "a: a new empty file"),
        (("x\0y", "x\0z"), "binary file a: 3 bytes"),
    ],
)
def test_empty_and_binary_files_are_said(file: tuple[str, str], note: str) -> None:
    [proposal] = proposals(a=file)
    assert note in "\n".join(line.text for line in diff_lines(proposal))


def test_hunks_and_files_are_decided_one_by_one() -> None:
    review = HunkReview(proposals(a=(BEFORE, AFTER), b=(BEFORE, AFTER), c=("old\n", None)))
    assert "hunk 1 of 2" in review.title
    review.decide("accept", HEIGHT)
    assert "hunk 2 of 2" in review.title, "the next one is looked at"
    review.decide("reject", HEIGHT)
    assert review.title.startswith("b  modified  (file 2 of 3")
    review.decide_file("accept", HEIGHT)
    assert review.title == "c  deleted  (file 3 of 3)"
    review.decide("reject", HEIGHT)
    review.decide(None, HEIGHT)
    assert review.summary == "3 accepted, 1 rejected, 1 stays staged"
    assert [(each.path, each.accepted, each.rejected) for each in review.decisions()] == [
        ("a", (1,), (2,)),
        ("b", (1, 2), ()),
    ]


def test_the_hunk_that_is_looked_at_is_on_the_screen_and_marked() -> None:
    text = "".join(f"line {number}\n" for number in range(400))
    changed = text.replace("0\n", "zero\n")
    review = HunkReview(proposals(a=(text, changed)))
    for number in range(1, 40):
        rows = review.rows(HEIGHT)
        assert len(rows) == HEIGHT
        current = [row for row in rows if row.is_current]
        assert current[0].mark == "[  ] ", f"hunk {number} is shown from its start"
        review.decide("accept", HEIGHT)
    assert any(row.mark == "[yes]" for row in review.rows(HEIGHT))


def test_what_is_to_be_known_about_a_long_file_is_on_the_screen() -> None:
    staged = StagedWorld(MemoryWorld({"a": b"short\n", "old": AFTER.encode()}))
    staged.delete("a")
    staged.delete("old")
    staged.write("new", AFTER.encode())
    review = HunkReview(staged.proposals())
    review.move_file(1, HEIGHT)
    assert review.rows(HEIGHT)[0].line.text == "new renamed from old"
    review.move_file(1, HEIGHT)
    review.move(-1, HEIGHT)
    assert review.rows(HEIGHT)[0].line.text == "new renamed from old", "also on the way back"


def test_long_and_wide_lines_are_folded_and_nothing_of_them_is_cut() -> None:
    long = "word " * 60 + "\t" + "\u65e5\u672c\u8a9e" * 40 + "!"
    review = HunkReview(proposals(a=("old\n", f"{long}\n")))
    review.lay_out(40)
    rows = [row.line for row in review.rows(100)]
    assert all(cell_width(line.text) <= 40 for line in rows)
    assert "".join(line.text for line in rows if line.kind == "added") == f"+{long}".replace("\t", "    ")


def test_scrolling_stops_at_the_ends() -> None:
    review = HunkReview(proposals(a=(BEFORE, AFTER)))
    first = review.rows(5)
    review.scroll(-50)
    assert review.rows(5) == first
    review.scroll(500)
    assert len(review.rows(5)) == 5


def staged_session(home: Path) -> tuple[str, ...]:
    words = prepared(home, runs(f"open('a.txt', 'w').write({AFTER!r})"), "Done.")
    (home / "work" / "a.txt").write_text(BEFORE)
    return words


def test_hunks_are_reviewed_in_the_chat_and_from_outside(tmp_path: Path) -> None:
    with terminal(*staged_session(tmp_path), home=tmp_path) as user:
        user.resize(24, 80)
        small = {"rows": 24, "columns": 80}
        assert user.wait_for("/help")
        user.type("write it\r")
        assert user.wait_for("1 staged (/diff")
        user.type("/review\r")
        user.wait_for_row("hunk 1 of 2", **small)
        rows = user.wait_for_row("y yes  n no", **small)  # the last row that is drawn
        assert rows[0].startswith("a.txt  modified  (file 1 of 1, hunk 1 of 2)")
        assert [row[:16] for row in rows[3:5]] == ["[  ]  @@ -1,7 +1", "  |    line 0"]
        assert rows[-1].startswith("y yes  n no")
        user.type("y")
        user.wait_for_row("hunk 2 of 2", **small)
        user.type("\r")
        user.wait_for_row("commit 1 change and drop 0?", **small)
        user.type("y")
        assert user.wait_for("commit  a.txt")
        assert user.wait_for("still staged: a.txt")
        assert user.end("\x04") == 0
    half = BEFORE.replace("line 3\n", "line three\n")
    assert (tmp_path / "work" / "a.txt").read_text() == half
    with terminal("proposals", "review", home=tmp_path) as user:
        user.wait_for_row("(file 1 of 1)")
        user.type("n")
        user.wait_for_row("1 rejected")
        user.type("\r")
        user.wait_for_row("drop 1?")
        user.type("y")
        assert user.wait_for("rejected a.txt\r\n")
        assert user.end() == 0
    assert (tmp_path / "work" / "a.txt").read_text() == half
    assert "nothing is staged" in holdfast("proposals", "show", home=tmp_path).stderr


def test_leaving_the_review_decides_nothing(tmp_path: Path) -> None:
    with terminal(*staged_session(tmp_path), home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("write it\r")
        assert user.wait_for("1 staged (/diff")
        user.type("/review\r")
        user.wait_for_row("hunk 1 of 2")
        user.type("y")
        user.wait_for_row("1 accepted")
        user.type("q")
        assert user.wait_for("nothing was applied: everything is still staged")
        assert user.end("\x04") == 0
    assert (tmp_path / "work" / "a.txt").read_text() == BEFORE


def test_hunks_are_reviewed_by_questions_in_plain_mode(tmp_path: Path) -> None:
    with terminal(*staged_session(tmp_path), home=tmp_path, HOLDFAST_PLAIN="1") as user:
        assert user.wait_for("/help")
        user.type("write it\n")
        assert user.wait_for("1 staged (/diff")
        assert user.wait_for("  ready")
        # Another process can look at what is staged while the chat holds the session.
        assert "+line three" in holdfast("proposals", "show", home=tmp_path).stdout
        user.type("/review\n")
        assert user.wait_for("a.txt  modified  (file 1 of 1, hunk 1 of 2)")
        assert user.wait_for("+line three")
        assert user.wait_for("q to quit> ")
        user.type("perhaps\n")
        assert user.wait_for("that is not one of the answers")
        assert user.wait_for("q to quit> ")
        user.type("y\n")
        assert user.wait_for("hunk 2 of 2")
        assert user.wait_for("q to quit> ")
        user.type("\n")
        assert user.wait_for("commit 1 change and drop 0? [y/N] ")
        user.type("y\n")
        assert user.wait_for("still staged: a.txt")
        user.type("\x04")
        assert user.end() == 0
    half = BEFORE.replace("line 3\n", "line three\n")
    assert (tmp_path / "work" / "a.txt").read_text() == half
    with terminal("proposals", "review", home=tmp_path, HOLDFAST_PLAIN="1") as user:
        assert user.wait_for("q to quit> ")
        user.type("n file\n")
        assert user.wait_for("drop 1? [y/N] ")
        user.type("y\n")
        assert user.end() == 0
    assert (tmp_path / "work" / "a.txt").read_text() == half
    assert "nothing is staged" in holdfast("proposals", "show", home=tmp_path).stderr
