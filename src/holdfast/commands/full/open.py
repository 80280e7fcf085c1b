"""Opening a full sandbox: the init process and its configuration."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

from holdfast.commands.contract import SandboxStatus
from holdfast.commands.environment import build_environment
from holdfast.commands.full.sandbox import SystemSandbox
from holdfast.commands.layers.git_folder import outside_git_folder
from holdfast.commands.layers.layer import WorkspaceLayer
from holdfast.commands.layout import HOME, Layout, layout_of
from holdfast.commands.settings import SandboxSettings
from holdfast.commands.toolchains import find_toolchains
from holdfast.core import Json, JsonObject
from holdfast.process.bare_python import stub_packages

_INIT = (
    f"{stub_packages('holdfast.commands', 'holdfast.commands.init')}"
    "from holdfast.commands.init.init_main import main\nmain()\n"
)
_INOTIFY_INSTANCES = 48
_ALWAYS_WRITABLE = ("/tmp", "/run", "/dev/shm")  # noqa: S108 - the sandbox's own


async def open_full_sandbox(
    workspace: Path, state: Path, *, settings: SandboxSettings, status: SandboxStatus
) -> SystemSandbox:
    """Open a full sandbox over a workspace; the layers are in the state folder. Raises CommandError."""
    for name in ("workspace", "home", "git"):
        for folder in ("upper", "work"):
            (state / name / folder).mkdir(parents=True, exist_ok=True)
    (state / "root").mkdir(exist_ok=True)
    git = outside_git_folder(workspace)
    toolchains = find_toolchains(settings.toolchains, workspace=workspace)
    layout = layout_of(toolchains.folders, workspace=workspace)
    ours, init = start_init(_INIT)
    outside = None if git is None else (state / "git" / "upper", git)
    layer = WorkspaceLayer(state / "workspace" / "upper", workspace, git=outside)
    sandbox = SystemSandbox(workspace=workspace, layer=layer, settings=settings, status=status, init=init)
    try:
        await asyncio.to_thread(layer.hide_credentials)
        environment = await asyncio.to_thread(build_environment, toolchains, added=settings.environment)
        await sandbox.attach(ours, _configuration(workspace, state, layout, settings, git), environment)
    except BaseException:
        await sandbox.close()
        raise
    return sandbox


def start_init(program: str) -> "tuple[socket.socket, subprocess.Popen[bytes]]":
    """Start the init process; its configuration goes over the socket, because arguments show in lists of processes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        init = subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", program],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,  # Ctrl-C stops the command that runs, not the sandbox of the later ones
        )
    return ours, init


def _configuration(
    workspace: Path, state: Path, layout: Layout, settings: SandboxSettings, git: Path | None
) -> JsonObject:
    overlays: list[Json] = [{"at": str(workspace), "name": "workspace", "has_base": True}]
    layers: JsonObject = {
        "workspace-base": str(workspace),
        "workspace-state": str(state / "workspace"),
        "home-state": str(state / "home"),
    }
    if git is not None:
        overlays.append({"at": str(git), "name": "git", "has_base": True})
        layers |= {"git-base": str(git), "git-state": str(state / "git")}
    outside = [] if git is None else [str(git)]
    return {
        "root": str(state / "root"),
        "workspace": str(workspace),
        "read_only": [list(each) for each in layout.read_only],
        "copied": list(layout.copied),
        "links": [list(each) for each in layout.links],
        "files": dict(layout.files),
        "empty_folders": [str(workspace), HOME, *outside],
        "layers": layers,
        "fixed_overlays": [{"at": HOME, "name": "home", "has_base": False}],
        "overlays": overlays,
        "writable": [*_ALWAYS_WRITABLE, HOME, str(workspace), *outside],
        "temporary_mb": settings.temporary_mb,
        "inotify_instances": _INOTIFY_INSTANCES,
        "memory_mb": settings.memory_mb,
        "disk_mb": settings.disk_mb,
        "processes": settings.processes,
        "without": list(settings.removed_walls),
    }
