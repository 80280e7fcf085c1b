"""Private files beside the database: replaced atomically, accessible only to the owner, durable on return."""

import os
import stat
from pathlib import Path

import pytest

from holdfast.store import replace_private


def test_a_replaced_file_is_durable_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    sync = os.fsync

    def watched(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    path = tmp_path / "grants.json"
    path.write_bytes(b"old")
    replace_private(path, b"new")
    assert synced == [path.stat().st_ino, tmp_path.stat().st_ino]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_failed_replacement_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "grants.json"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_private(path, b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("grants.json", b"old")]
