"""Showing staged files while a background process runs: the overlay stays mounted, so files are written through it.

Each supervisor has its own copy of the mounts: a second mount would share the layer with them. Written through the overlay,
a file of the base becomes a copy in the layer. It is remembered as shown, so it neither counts as a change nor hides the
person's later edits: the next `show` compares it with the base again.
"""

import os
import stat
from collections.abc import Collection, Sequence

from holdfast.commands.contract import StagedFile
from holdfast.commands.full.channel import Channel
from holdfast.commands.full.streams import content_descriptor
from holdfast.commands.git.clean_config import clean_git_config
from holdfast.commands.layers.collect import collect, read_version
from holdfast.commands.layers.entries import signature_of, status_beneath
from holdfast.commands.layers.layer import ShownFile, WorkspaceLayer, digest_of, parents_of
from holdfast.core import LINK_MODE


async def show_beside_programs(
    layer: WorkspaceLayer, channel: Channel, staged: Sequence[StagedFile], hidden: Collection[str]
) -> None:
    """Make running programs see base plus `staged`. They must be stopped. Raises CommandError or OSError.

    What they changed since the last collection stays for the next one, unless the file has become another meanwhile.
    """
    wanted = {file.path: file for file in staged}
    collect(layer)
    folders = {
        parent for path, file in wanted.items() if file.content is not None for parent in parents_of(path)
    }
    stale = (layer.hidden - set(hidden)) | layer.adopted.stale()
    stale |= layer.hidden_since - set(hidden) - folders
    shown: dict[str, ShownFile] = {}
    for path in sorted(stale | layer.shown.keys() | wanted.keys()):
        file = wanted.get(path) or _from_base(layer, path)
        target = _target(layer, file)
        known = layer.shown.get(path)
        if known and path not in stale and (known.digest, known.mode) == (target.digest, target.mode):
            shown[path] = known
            continue
        await _put(channel, file, target.mode)
        status = status_beneath(layer.descriptor, path)
        is_copy = status is not None and (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode))
        if is_copy or target.digest is None:
            signature = signature_of(status) if status is not None and is_copy else None
            shown[path] = ShownFile(digest=target.digest, mode=target.mode, signature=signature)
    for path in set(hidden) - layer.hidden:
        await channel.ask("put", path=path, mode=0)
    layer.shown, layer.hidden = shown, frozenset(hidden)
    # A folder that a program made hides nothing any more if the base has it too now: the overlay merges the two.
    layer.hiding -= layer.merged
    layer.hiding |= {path for path, file in shown.items() if file.digest is None}
    layer.remove_needless(kept=hidden)
    # Drops what the kernel remembers, so that files that changed in the base itself show as well.
    await channel.ask("refresh")


def _from_base(layer: WorkspaceLayer, path: str) -> StagedFile:
    found = read_version(layer.base, path)
    status = status_beneath(layer.base, path)
    is_link = status is not None and stat.S_ISLNK(status.st_mode)
    mode = None if status is None else LINK_MODE if is_link else status.st_mode & 0o777
    content = None if found is None else found[0]
    if content is not None and path in layer.cleaned:
        content = clean_git_config(content)
    return StagedFile(path=path, content=content, mode=mode)


def _target(layer: WorkspaceLayer, file: StagedFile) -> ShownFile:
    if file.content is None:
        return ShownFile(digest=None)
    return ShownFile(digest=digest_of(file.content), mode=layer.mode_of(file.path, file.mode))


async def _put(channel: Channel, file: StagedFile, mode: int) -> None:
    if file.content is None:
        await channel.ask("put", path=file.path, mode=0)
        return
    descriptor = content_descriptor(file.content)
    try:
        await channel.ask("put", path=file.path, mode=mode, descriptors=[descriptor])
    finally:
        os.close(descriptor)
