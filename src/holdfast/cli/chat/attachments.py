"""Files that a message attaches with `@path`: their text goes along with the message, and the person sees how much."""

import re
from itertools import islice
from typing import NamedTuple, Protocol

from holdfast.core import digest_bytes, escape_invisible, pluralize
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.models import estimate_media_tokens, media_type_of, takes_media
from holdfast.session import AttachedFile, AttachedText, attached_file
from holdfast.world import Stat

MAX_BYTES = 100_000
"""What one file adds to a message; the agent reads the rest itself."""
MAX_MEDIA_BYTES = 5_000_000
"""What providers take of one picture."""
MAX_COMPLETIONS = 100
_BYTES_PER_TOKEN = 4
_MENTION = re.compile(r"(?<!\S)@(?:\"((?:\\\"|[^\"])+)\"|(\S+))")
"""In quotes, a quote of the name has a backslash before it. No path of a call has a backslash of its own."""
_NAMES_A_FILE = re.compile(r"/|\.\w")
_PUNCTUATION = ".,;:!?)"


MAX_FILE_BYTES = 20_000_000
"""A larger file is not opened."""


class ReadableFiles(Protocol):
    """The files of a workspace."""

    def read(self, path: str) -> bytes:
        """The whole content."""
        ...

    def stat(self, path: str) -> Stat:
        """Kind and size."""
        ...

    def names(self, path: str) -> tuple[str, ...]:
        """The paths of everything directly in a folder, sorted."""
        ...


class Attached(NamedTuple):
    """A message with its files, and a line for the person about each."""

    text: str
    notes: tuple[str, ...]
    files: tuple[AttachedFile, ...] = ()
    """Pictures and documents, which go along as they are."""
    attached_text: AttachedText | None = None
    """Which part of the text comes from files."""


def attach_files(text: str, files: ReadableFiles, *, model: str = "") -> Attached:
    """Add the text of every file that the message mentions. A name that is not a file stays a word of the message.

    Pictures and PDFs go along as files. Raises InvalidInput if the model does not take one.
    """
    sections: list[str] = []
    digests: list[str] = []
    notes: list[str] = []
    media: list[AttachedFile] = []
    for path, content in dict(_read(files, each) for each in _mentions(text)).items():
        shown = escape_invisible(path)
        if content is None:
            if _NAMES_A_FILE.search(path):
                notes.append(f"@{shown} is not a file of the workspace, so it stays text")
            continue
        if media_type := media_type_of(content):
            _check_taken(shown, media_type, content, model)
            media.append(attached_file(path, media_type, content))
            tokens = estimate_media_tokens(media_type, content)
            notes.append(f"attached {shown} ({media_type}, {len(content):,} bytes, about {tokens:,} tokens)")
            continue
        if b"\0" in content[:MAX_BYTES]:
            notes.append(f"@{shown} is not text, so it is not attached; the agent can open it")
            continue
        body = content[:MAX_BYTES].decode("utf-8", "replace")
        cut = f"\n[the rest of {len(content):,} bytes is left out]" if len(content) > MAX_BYTES else ""
        digests.append(digest_bytes(content))
        sections.append(f"File {path}:\n```\n{body}{cut}\n```")
        tokens = min(len(content), MAX_BYTES) // _BYTES_PER_TOKEN
        size = f"{pluralize(len(content), 'byte')}, about {pluralize(max(1, tokens), 'token')}"
        notes.append(f"attached {shown} ({size}{', the start of it' if cut else ''})")
    attached_text = AttachedText(len(text), tuple(digests)) if digests else None
    return Attached("\n\n".join([text, *sections]), tuple(notes), tuple(media), attached_text)


def _check_taken(path: str, media_type: str, content: bytes, model: str) -> None:
    if not takes_media(model, media_type):
        raise InvalidInput(
            f"{escape_invisible(model) or 'this session'} does not take {media_type}, so the message was not sent",
            hint=f"leave out @{path}, or switch with /model to one that takes it",
        )
    if len(content) > MAX_MEDIA_BYTES:
        raise InvalidInput(
            f"{path} has {len(content):,} bytes, and at most {MAX_MEDIA_BYTES:,} are sent",
            hint="make it smaller",
        )


def _mentions(text: str) -> list[str]:
    return [quoted.replace('\\"', '"') or bare.strip('"') for quoted, bare in _MENTION.findall(text)]


def _read(files: ReadableFiles, mentioned: str) -> tuple[str, bytes | None]:
    """The path that a mention means, without the punctuation of its sentence, and the content; None if it is not a file."""
    bare = mentioned.rstrip(_PUNCTUATION)
    for candidate in (mentioned, bare):
        try:
            if files.stat(candidate).size <= MAX_FILE_BYTES:
                return candidate, files.read(candidate)
        except (HoldfastError, OSError, ValueError):
            continue
    return bare, None


def complete_path(start: str, files: ReadableFiles) -> list[str]:
    """The paths that begin with what was typed after `@`; a folder ends with a slash.

    Only those that are offered are looked at: a folder may have 100,000 files, and each key press asks again.
    """
    folder, _, name = start.rpartition("/")
    try:
        names = files.names(folder or ".")
    except (HoldfastError, OSError, ValueError):
        return []
    matching = (path for path in names if path.startswith(start))
    shown = (path for path in matching if name or not path.rpartition("/")[2].startswith("."))
    return list(islice(filter(None, (_offered(path, files) for path in shown)), MAX_COMPLETIONS))


def _offered(path: str, files: ReadableFiles) -> str:
    """The path as it completes; empty if it is neither a file nor a folder that a message could name."""
    try:
        return f"{path}/" if files.stat(path).kind == "folder" else path
    except (HoldfastError, OSError, ValueError):
        return ""
