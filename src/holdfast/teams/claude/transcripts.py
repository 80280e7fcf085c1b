"""The program's transcripts. They are found by searching; the folder's name is never derived from the project's."""

import os
from pathlib import Path
from uuid import UUID

import msgspec

MAX_BYTES = 256 << 20


def find(folder: Path, conversation: str) -> Path | None:
    """The transcript of a conversation; None if it is missing or empty."""
    for path in (folder / "config" / "projects").glob(f"*/{conversation}.jsonl"):
        if path.is_file() and path.stat().st_size > 0:
            return path
    return None


def resume_problem(folder: Path, conversation: str, project: str) -> str:
    """Why a conversation cannot be resumed in a project; empty if it can."""
    path = find(folder, conversation)
    if path is None:
        return "its transcript is missing"
    recorded = _recorded_folder(path)
    if recorded is None:
        return "its transcript cannot be read"
    return "" if recorded == os.path.realpath(project) else "its transcript belongs to another folder"


def newest(folder: Path, project: str) -> str | None:
    """The latest conversation in an agent home, for a pair whose journal was lost; None if there is none."""
    found = [
        path
        for path in (folder / "config" / "projects").glob("*/*.jsonl")
        if _is_uuid(path.stem) and not resume_problem(folder, path.stem, project)
    ]
    return max(found, key=lambda path: path.stat().st_mtime_ns).stem if found else None


def answer_to(folder: Path, conversation: str, message_id: str) -> str | None:
    """The program's answer to a message that it completed; None if the transcript does not have it."""
    path = find(folder, conversation)
    if path is None or path.stat().st_size > MAX_BYTES:
        return None
    texts: list[str] | None = None
    for line in path.read_bytes().splitlines():
        try:
            row = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            continue  # a truncated or unknown line; the program skips it too
        if not isinstance(row, dict) or row.get("isSidechain"):
            continue
        if row.get("type") == "user" and not _is_tool_result(row):
            if texts is not None and row.get("uuid") != message_id:
                break
            if row.get("uuid") == message_id:
                texts = []
        elif row.get("type") == "assistant" and texts is not None:
            texts = _texts(row) or texts
    return "\n".join(texts) if texts else None


def _recorded_folder(path: Path) -> str | None:
    """The project folder that a transcript records. Its own folder's name is ambiguous: two projects may share it."""
    with path.open("rb") as lines:
        for line in lines:
            try:
                row = msgspec.json.decode(line)
            except (ValueError, RecursionError):
                continue
            recorded = row.get("cwd") if isinstance(row, dict) else None
            if isinstance(recorded, str):
                return os.path.realpath(recorded)
    return None


def _texts(row: dict[str, object]) -> list[str]:
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    blocks = content if isinstance(content, list) else []
    return [block["text"] for block in blocks if isinstance(block, dict) and block.get("type") == "text"]


def _is_tool_result(row: dict[str, object]) -> bool:
    message = row.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
