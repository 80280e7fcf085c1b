"""`@path` attaches a file to a message, and says how much that is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from holdfast.cli.chat.attachments import (
    MAX_BYTES,
    MAX_COMPLETIONS,
    MAX_MEDIA_BYTES,
    attach_files,
    complete_path,
)
from holdfast.cli.terminal.line_editor import line_completer
from holdfast.core.errors import InvalidInput
from holdfast.world import FolderWorld, MemoryWorld, Stat

PNG = b"\x89PNG\r\n\x1a\n\0\0"


@pytest.fixture
def files(tmp_path: Path) -> FolderWorld:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("print('hi')\n")
    (tmp_path / "with space.txt").write_text("spaced\n")
    (tmp_path / ".env").write_text("KEY=1\n")
    (tmp_path / "large.txt").write_text("x" * (MAX_BYTES + 5))
    (tmp_path / "data.bin").write_bytes(b"\x01\0\0")
    (tmp_path / "picture.png").write_bytes(PNG)
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7 /Type /Page /Type /Pages /Type/Page ")
    (tmp_path / "huge.png").write_bytes(PNG + bytes(MAX_MEDIA_BYTES))
    return FolderWorld(tmp_path)


def test_a_mentioned_file_goes_along_with_its_size(files: FolderWorld) -> None:
    attached = attach_files("what does @src/main.py do?", files)
    assert attached.text.startswith("what does @src/main.py do?\n\nFile src/main.py:\n```\nprint('hi')")
    assert attached.notes == ("attached src/main.py (12 bytes, about 3 tokens)",)


def test_a_name_in_quotes_and_one_before_a_full_stop_are_found(files: FolderWorld) -> None:
    attached = attach_files('see @"with space.txt" and @src/main.py.', files)
    assert "spaced" in attached.text
    assert "File src/main.py:" in attached.text
    assert attached.notes[1].startswith("attached src/main.py (")
    assert attach_files("is @gone.txt?", files).notes[0].startswith("@gone.txt is not a file")


def test_a_file_is_attached_once(files: FolderWorld) -> None:
    assert len(attach_files("@src/main.py @src/main.py.", files).notes) == 1


def test_an_address_or_a_missing_file_stays_a_word(files: FolderWorld) -> None:
    for text in ("mail a@example.org", "ask @nobody", "@", "@.."):
        assert attach_files(text, files) == (text, (), (), None)


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "src/missing.py", "missing.txt"])
def test_a_path_that_is_not_a_file_of_the_workspace_stays_text_and_is_noted(
    files: FolderWorld, path: str
) -> None:
    note = f"@{path} is not a file of the workspace, so it stays text"
    assert attach_files(f"see @{path}", files) == (f"see @{path}", (note,), (), None)


def test_a_long_file_is_cut_and_a_binary_one_is_not_attached(files: FolderWorld) -> None:
    attached = attach_files("@large.txt @data.bin", files)
    assert len(attached.text) < MAX_BYTES + 300
    assert "is left out" in attached.text
    assert attached.notes[0].endswith("the start of it)")
    assert attached.notes[1] == "@data.bin is not text, so it is not attached; the agent can open it"


def test_a_picture_and_a_pdf_go_along_as_files_with_their_cost(files: FolderWorld) -> None:
    attached = attach_files("compare @picture.png with @paper.pdf", files, model="anthropic:any")
    assert attached.text == "compare @picture.png with @paper.pdf"
    assert attached.notes == (
        "attached picture.png (image/png, 10 bytes, about 1,600 tokens)",
        "attached paper.pdf (application/pdf, 45 bytes, about 5,000 tokens)",
    )
    assert [(each.attachment.media_type, each.content[:4]) for each in attached.files] == [
        ("image/png", PNG[:4]),
        ("application/pdf", b"%PDF"),
    ]


@pytest.mark.parametrize(
    ("text", "model", "problem"),
    [
        ("@picture.png", "local:small.gguf", "local:small.gguf does not take image/png"),
        ("@paper.pdf", "ollama:llava", "does not take application/pdf"),
        ("@huge.png", "openai:any", "at most 5,000,000 are sent"),
    ],
)
def test_a_model_that_does_not_take_a_file_is_named_before_anything_is_sent(
    text: str, model: str, problem: str, files: FolderWorld
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        attach_files(text, files, model=model)


def test_completion_lists_one_folder_and_hides_dot_files(files: FolderWorld) -> None:
    assert complete_path("s", files) == ["src/"]
    assert complete_path("src/", files) == ["src/main.py"]
    assert ".env" not in complete_path("", files)
    assert complete_path(".", files) == [".env"]
    assert complete_path("no/such", files) == []
    assert complete_path("../", files) == []


@pytest.mark.parametrize("name", ['"quoted"', 'my "file".txt', 'a"b.txt', "it's mine.txt", 'a "b/c".txt'])
def test_every_name_that_is_completed_is_attached(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("x")
    files = FolderWorld(tmp_path)
    completer = line_completer(lambda: (), lambda start: complete_path(start, files))
    typed = "@"
    while typed.endswith(("@", "/")):
        [found] = completer.get_completions(Document(typed), CompleteEvent(completion_requested=True))
        typed = typed[: len(typed) + found.start_position] + found.text
    assert attach_files(f"see {typed}.", files).notes == (f"attached {name} (1 byte, about 1 token)",)


def test_completion_looks_only_at_the_files_that_it_offers(tmp_path: Path) -> None:
    looked_at: list[str] = []

    class Watched(FolderWorld):
        def stat(self, path: str) -> Stat:
            looked_at.append(path)
            return super().stat(path)

    for number in range(300):
        (tmp_path / f"{number:03d}").touch()
    files = Watched(tmp_path)
    assert len(complete_path("", files)) == MAX_COMPLETIONS
    assert len(looked_at) == MAX_COMPLETIONS
    looked_at.clear()
    assert complete_path("29", files) == [f"29{number}" for number in range(10)]
    assert len(looked_at) == 10


@given(text=st.text(max_size=60))
def test_any_message_keeps_its_words(text: str) -> None:
    assert attach_files(text, MemoryWorld()).text == text
