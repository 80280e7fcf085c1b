"""The world: the files that a guest sees. Path resolution, workspaces, staged changes and restore points."""

from holdfast.world.contract import Hit, NamedContent, Stat, World, delete_name, read_name, write_name
from holdfast.world.effect_writer import EffectWriter
from holdfast.world.folder.folder_world import FolderWorld
from holdfast.world.folder.open_folder import TrustedFolders, open_folder, reopen_folder
from holdfast.world.folder.project_file import read_project_file
from holdfast.world.folder.quota import Quota
from holdfast.world.host_copy import links_in
from holdfast.world.list_files import list_files
from holdfast.world.memory import MemoryWorld
from holdfast.world.paths.locate import WorldPaths
from holdfast.world.paths.names import GUEST_ROOTS, relative
from holdfast.world.restore_points.changes_since import ChangesSince
from holdfast.world.restore_points.points import (
    MAX_QUICK_BYTES,
    Restored,
    RestoreLimits,
    RestorePoint,
    RestorePoints,
)
from holdfast.world.staging.commit import Recovered, UndoJournal
from holdfast.world.staging.hunks import Hunk, HunkDecision, hunks_of, proposal_digest, unit_count
from holdfast.world.staging.line_diff import unified_diff
from holdfast.world.staging.proposals import Proposal
from holdfast.world.staging.staged_world import StagedWorld
from holdfast.world.tools import WORLD_TOOLS
from holdfast.world.toolset import READ_IN_PIECES, WorldToolset

__all__ = [
    "GUEST_ROOTS",
    "MAX_QUICK_BYTES",
    "READ_IN_PIECES",
    "WORLD_TOOLS",
    "ChangesSince",
    "EffectWriter",
    "FolderWorld",
    "Hit",
    "Hunk",
    "HunkDecision",
    "MemoryWorld",
    "NamedContent",
    "Proposal",
    "Quota",
    "Recovered",
    "RestoreLimits",
    "RestorePoint",
    "RestorePoints",
    "Restored",
    "StagedWorld",
    "Stat",
    "TrustedFolders",
    "UndoJournal",
    "World",
    "WorldPaths",
    "WorldToolset",
    "delete_name",
    "hunks_of",
    "links_in",
    "list_files",
    "open_folder",
    "proposal_digest",
    "read_name",
    "read_project_file",
    "relative",
    "reopen_folder",
    "unified_diff",
    "unit_count",
    "write_name",
]
