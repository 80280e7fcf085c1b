"""Files and facts as a guest sees them: paths, workspaces, staging, proposals, restore points."""

from holdfast.world.commits import Recovered, UndoJournal
from holdfast.world.contract import Hit, Stat, World
from holdfast.world.folder import FolderWorld
from holdfast.world.located import WorldPaths
from holdfast.world.memory import MemoryWorld
from holdfast.world.opening import open_folder, reopen_folder
from holdfast.world.proposals import Proposal
from holdfast.world.quota import Quota
from holdfast.world.restore import MAX_QUICK_BYTES, Restored, RestorePoint, RestorePoints
from holdfast.world.staged import StagedWorld
from holdfast.world.tools import WORLD_TOOLS
from holdfast.world.toolset import WorldToolset
from holdfast.world.trust import TrustBook

__all__ = [
    "MAX_QUICK_BYTES",
    "WORLD_TOOLS",
    "FolderWorld",
    "Hit",
    "MemoryWorld",
    "Proposal",
    "Quota",
    "Recovered",
    "RestorePoint",
    "RestorePoints",
    "Restored",
    "StagedWorld",
    "Stat",
    "TrustBook",
    "UndoJournal",
    "World",
    "WorldPaths",
    "WorldToolset",
    "open_folder",
    "reopen_folder",
]
