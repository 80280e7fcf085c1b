"""Reading a file that a project brings for Holdfast itself. The host reads it; guests cannot open `.holdfast`."""

import os
from pathlib import Path

from holdfast.world.folder.files import PlainFiles
from holdfast.world.folder.folder_world import FolderWorld
from holdfast.world.paths.open_beneath import BeneathRoot

_OWN = ".holdfast/"


def read_project_file(folder: Path, path: str, *, max_bytes: int) -> bytes:
    """The first bytes of a file. A symlink is followed inside the folder, in `.holdfast` none. Raises PathRefused or OSError."""
    real = path if path.startswith(_OWN) else FolderWorld(folder).resolve(path)
    with PlainFiles(BeneathRoot(folder)).opened(real, os.O_RDONLY) as opened:
        pieces = []
        while max_bytes > 0 and (piece := os.read(opened, max_bytes)):
            pieces.append(piece)
            max_bytes -= len(piece)
        return b"".join(pieces)
