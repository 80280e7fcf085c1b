"""The stat cache: a restore point skips only files whose every later change would be visible."""

import os
from pathlib import Path

from holdfast.world.restore_points.manifest import TreeEntry
from holdfast.world.restore_points.scan import ScanEntry, StatCache

SIGN = (1, 2, 3, 4, 0o100644)
ENTRY = TreeEntry(path="a", kind="file", mode=0o644, size=2, fingerprint="f")


def test_a_file_is_unchanged_while_its_signature_and_content_are() -> None:
    signs = StatCache()
    settled = ScanEntry("a", SIGN, is_settled=True)
    assert not signs.is_unchanged(settled, ENTRY), "it was never read"
    signs.record(settled, ENTRY)
    assert signs.is_unchanged(settled, ENTRY)
    assert not signs.is_unchanged(ScanEntry("a", (1, 2, 3, 5, 0o100644), is_settled=True), ENTRY)
    assert not signs.is_unchanged(
        settled, TreeEntry(path="a", kind="file", mode=0o644, size=2, fingerprint="g")
    )


def test_a_file_that_changed_right_before_it_was_read_is_read_again() -> None:
    signs = StatCache()
    signs.record(ScanEntry("a", SIGN, is_settled=True), ENTRY)
    signs.record(ScanEntry("a", SIGN, is_settled=False), ENTRY)
    assert not signs.is_unchanged(ScanEntry("a", SIGN, is_settled=True), ENTRY)


def test_the_stat_cache_is_saved_privately_for_the_next_process(tmp_path: Path) -> None:
    file, look = tmp_path / "signs" / "s", ScanEntry("a", SIGN, is_settled=True)
    signs = StatCache(file)
    signs.record(look, ENTRY)
    before = os.umask(0)
    try:
        signs.save()
    finally:
        os.umask(before)
    assert StatCache(file).is_unchanged(look, ENTRY)
    assert (file.parent.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_a_full_disk_costs_only_the_stat_cache(tmp_path: Path) -> None:
    (tmp_path / "no folder").touch()
    (tmp_path / "taken").mkdir()
    for file in (tmp_path / "no folder" / "s", tmp_path / "taken"):
        signs = StatCache(file)
        signs.record(ScanEntry("a", SIGN, is_settled=True), ENTRY)
        signs.save()
    assert {path.name for path in tmp_path.iterdir()} == {"no folder", "taken"}
