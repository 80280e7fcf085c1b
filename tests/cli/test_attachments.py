"""`@path` attaches a file to a message, and says how much that is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.chat.attachments import MAX_BYTES, attach_files, complete_path
from holdfast.world import FolderWorld, MemoryWorld


@pytest.fixture
def files(tmp_path: Path) -> FolderWorld:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("print('hi')\n")
    (tmp_path / "with space.txt").write_text("spaced\n")
    (tmp_path / ".env").write_text("KEY=1\n")
    (tmp_path / "large.txt").write_text("x" * (MAX_BYTES + 5))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    return FolderWorld(tmp_path)


def test_a_mentioned_file_goes_along_with_its_size(files: FolderWorld) -> None:
    attached = attach_files("what does @src/main.py do?", files)
    assert attached.text.startswith("what does @src/main.py do?\n\nFile src/main.py:\n```\nprint('hi')")
    assert attached.notes == ("attached src/main.py (12 bytes, about 3 tokens)",)


def test_a_name_in_quotes_and_one_before_a_full_stop_are_found(files: FolderWorld) -> None:
    attached = attach_files('see @"with space.txt" and @src/main.py.', files)
    assert "spaced" in attached.text
    assert "print('hi')" in attached.text


def test_a_file_is_attached_once(files: FolderWorld) -> None:
    assert len(attach_files("@src/main.py @src/main.py", files).notes) == 1


def test_an_address_or_a_missing_file_stays_a_word(files: FolderWorld) -> None:
    for text in ("mail a@example.org", "ask @nobody", "@", "@..", "@/etc/passwd", "@../secret"):
        assert attach_files(text, files) == (text, ())


def test_a_long_file_is_cut_and_a_binary_one_is_not_attached(files: FolderWorld) -> None:
    attached = attach_files("@large.txt @picture.png", files)
    assert len(attached.text) < MAX_BYTES + 300
    assert "is left out" in attached.text
    assert attached.notes[0].endswith("the start of it)")
    assert attached.notes[1] == "@picture.png is not text, so it is not attached; the agent can open it"


def test_completion_lists_one_folder_and_hides_dot_files(files: FolderWorld) -> None:
    assert complete_path("s", files) == ["src/"]
    assert complete_path("src/", files) == ["src/main.py"]
    assert ".env" not in complete_path("", files)
    assert complete_path(".", files) == [".env"]
    assert complete_path("no/such", files) == []
    assert complete_path("../", files) == []


@given(text=st.text(max_size=60))
def test_any_message_keeps_its_words(text: str) -> None:
    assert attach_files(text, MemoryWorld()).text == text
