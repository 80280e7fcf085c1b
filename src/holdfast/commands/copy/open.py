"""Opening a copy sandbox: the copy of the workspace, and what programs can read besides."""

import asyncio
from pathlib import Path

from holdfast.commands.contract import SandboxStatus
from holdfast.commands.copy.layer import CopyLayer
from holdfast.commands.environment import build_environment
from holdfast.commands.full.open import start_init
from holdfast.commands.full.sandbox import SystemSandbox
from holdfast.commands.layout import Layout, layout_of
from holdfast.commands.settings import SandboxSettings
from holdfast.commands.toolchains import find_toolchains
from holdfast.core import JsonObject
from holdfast.process.bare_python import stub_packages

_INIT = (
    f"{stub_packages('holdfast.commands', 'holdfast.commands.init')}"
    "from holdfast.commands.init.copy_main import main\nmain()\n"
)
_SYSTEM_FILES = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/proc")


async def open_copy_sandbox(
    workspace: Path, state: Path, *, settings: SandboxSettings, status: SandboxStatus
) -> SystemSandbox:
    """Open a sandbox over a copy of a workspace, in the state folder. Raises CommandError."""
    copy, home, temporary = state / "copy" / workspace.name, state / "copy-home", state / "copy-tmp"
    for folder in (copy, home, temporary):
        folder.mkdir(parents=True, exist_ok=True)
    toolchains = find_toolchains(settings.toolchains, workspace=workspace)
    layout = layout_of(toolchains.folders, workspace=workspace)
    ours, init = start_init(_INIT)
    layer = CopyLayer(copy, workspace)
    sandbox = SystemSandbox(workspace=copy, layer=layer, settings=settings, status=status, init=init)
    places = {"HOME": str(home), "TMPDIR": str(temporary)}
    try:
        environment = await asyncio.to_thread(
            build_environment, toolchains, added={**places, **settings.environment}
        )
        configuration = _configuration(copy, [home, temporary], layout, settings)
        await sandbox.attach(ours, configuration, environment)
        await sandbox.show([])
    except BaseException:
        await sandbox.close()
        raise
    return sandbox


def _configuration(copy: Path, others: list[Path], layout: Layout, settings: SandboxSettings) -> JsonObject:
    shown = [*(source for source, _ in layout.read_only), *layout.copied, *(path for _, path in layout.links)]
    return {
        "workspace": str(copy),
        "writable": [str(copy), *map(str, others)],
        "readable": [*shown, *_SYSTEM_FILES],
        "memory_mb": settings.memory_mb,
        "disk_mb": settings.disk_mb,
        "processes": settings.processes,
        "without": list(settings.removed_walls),
    }
