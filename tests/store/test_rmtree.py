"""Folders that an attacker filled can be removed."""

import os
from pathlib import Path

from holdfast.store.files.rmtree import remove_tree

DEEPER_THAN_A_PATH = 5000


def dig(folder: Path, depth: int) -> None:
    """Nested folders, deeper than any path can be."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    dig(tmp_path / "tree", DEEPER_THAN_A_PATH)
    remove_tree(tmp_path / "tree")
    assert list(tmp_path.iterdir()) == []


def test_a_symlink_is_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "tree" / "inner" / "link").symlink_to("../../kept")
    remove_tree(tmp_path / "tree")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "file").exists()


def test_an_inaccessible_folder_is_removed(tmp_path: Path) -> None:
    (tmp_path / "tree" / "shut" / "inner").mkdir(parents=True)
    (tmp_path / "tree" / "shut" / "inner").chmod(0)
    (tmp_path / "tree" / "shut").chmod(0)
    remove_tree(tmp_path / "tree")
    assert list(tmp_path.iterdir()) == []


def test_removing_a_missing_folder_is_not_an_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "tree")
