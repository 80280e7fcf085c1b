"""The overlays of a sandbox: base folders that programs see and cannot change, each with a layer that takes the changes."""

import contextlib
import os

from holdfast.commands.init.root import LAYERS
from holdfast.commands.init.syscalls import NO_DEVICES, NO_SUID, REMOUNT, mount, unmount


class OverlayMount:
    """One overlay mount: the layers `{name}-base` and `{name}-state` at a path. Without a base it starts empty."""

    def __init__(self, *, at: str, name: str, has_base: bool) -> None:
        self.at = at
        self._base = f"{LAYERS}/{name}-base" if has_base else f"{LAYERS}/empty"
        self._state = f"{LAYERS}/{name}-state"

    def mount(self) -> None:
        """Mount it. No process may see an older mount of it: two mounts must not share a layer. Raises OSError."""
        # The names are ours, so they need no escapes. userxattr: an ordinary user cannot set trusted attributes.
        # volatile: else each unmount, also that of the last process, waits until the whole disk of the layer is written.
        options = f"lowerdir={self._base},upperdir={self._state}/upper,workdir={self._state}/work,userxattr,volatile"
        # The kernel refuses a layer with the mark of an earlier mount.
        mark = f"{self._state}/work/work/incompat/volatile"
        for remove, path in (
            (os.unlink, f"{mark}/dirty"),
            (os.rmdir, mark),
            (os.rmdir, os.path.dirname(mark)),
        ):
            with contextlib.suppress(FileNotFoundError):
                remove(path)
        mount("overlay", self.at, "overlay", NO_SUID | NO_DEVICES, options)

    def unmount(self) -> None:
        """Unmount it. Raises OSError if a process uses it."""
        unmount(self.at)

    def refresh(self) -> None:
        """Drop what the kernel remembers about names, so that changes below the mount show. Raises OSError."""
        mount("none", self.at, flags=REMOUNT | NO_SUID | NO_DEVICES)
