"""The file system of a sandbox: a root built from nothing, with read-only binds of the system and private /tmp, /run and /dev.

The order matters. The private folders come before the binds, because a toolchain can lie below /tmp. /proc/sys becomes
read-only after the limits in it are set. Nothing of the old root is reachable at the end.
"""

import os

from holdfast.commands.init import syscalls
from holdfast.commands.init.syscalls import (
    BIND,
    NO_DEVICES,
    NO_EXECUTE,
    NO_SUID,
    READ_ONLY,
    RECURSIVE,
    REMOUNT,
    mount,
)

LAYERS = "/.layers"
"""Where the init process keeps the layers; the supervisor of each command removes it from the command's view."""
SYSTEM_PROCESSES = f"{LAYERS}/proc"
"""A /proc for the init process itself, which shows every process."""

_DEVICES = ("null", "zero", "full", "random", "urandom")
_DEVICE_LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)
_READ_ONLY_PROCESSES = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr")
_FILES_PER_MB = 400
_EMPTY_PROCESSES = (
    "kcore",
    "keys",
    "key-users",
    "timer_list",
    "kallsyms",
    "kmsg",
    "latency_stats",
    "kpagecount",
)


def build(
    folder: str,
    *,
    read_only: "list[tuple[str, str]]",
    copied: "list[str]",
    links: "list[tuple[str, str]]",
    files: "dict[str, str]",
    empty_folders: "list[str]",
    layers: "dict[str, str]",
    temporary_mb: int,
    inotify_instances: int,
    without: "frozenset[str]",
) -> None:
    """Build the root in an empty folder and enter it. Raises OSError."""
    mount("none", "/", flags=RECURSIVE | syscalls.PRIVATE)
    mount("tmpfs", folder, "tmpfs", NO_SUID | NO_DEVICES, "size=16m,nr_inodes=20k,mode=755")
    for name in ("/proc", "/dev", "/tmp", "/run", "/sys", "/var", "/etc", LAYERS):  # noqa: S108 - in the new root
        os.makedirs(folder + name, exist_ok=True)
    os.symlink("/tmp", f"{folder}/var/tmp")  # noqa: S108
    os.symlink("/run", f"{folder}/var/run")
    _mount_processes(folder, inotify_instances, without)
    _mount_devices(folder)
    room = (
        ""
        if "temporary-size" in without
        else f"size={temporary_mb}m,nr_inodes={temporary_mb * _FILES_PER_MB},"
    )
    mount("tmpfs", f"{folder}/dev/shm", "tmpfs", NO_SUID | NO_DEVICES, f"{room}mode=1777")  # noqa: S108
    mount("tmpfs", f"{folder}/tmp", "tmpfs", NO_SUID | NO_DEVICES, f"{room}mode=1777")  # noqa: S108
    mount("tmpfs", f"{folder}/run", "tmpfs", NO_SUID | NO_DEVICES, "size=16m,nr_inodes=10k,mode=755")
    for source, target in read_only:
        _bind(source, folder + target, is_read_only="read-only" not in without)
    for path in copied:
        os.makedirs(os.path.dirname(folder + path), exist_ok=True)
        with open(path, "rb") as original, open(folder + path, "wb") as copy:
            copy.write(original.read())
    for target, path in links:
        os.makedirs(os.path.dirname(folder + path), exist_ok=True)
        os.symlink(target, folder + path)
    for path, content in files.items():
        os.makedirs(os.path.dirname(folder + path), exist_ok=True)
        with open(folder + path, "w", encoding="utf-8") as file:
            file.write(content)
    for path in empty_folders:
        os.makedirs(folder + path, exist_ok=True)
    _mount_layers(folder, layers)
    syscalls.enter_root(folder)
    if "read-only" not in without:
        mount("none", "/", flags=BIND | REMOUNT | READ_ONLY | NO_SUID | NO_DEVICES)


def _mount_processes(folder: str, inotify_instances: int, without: "frozenset[str]") -> None:
    proc = f"{folder}/proc"
    flags = NO_SUID | NO_DEVICES | NO_EXECUTE
    # A program sees only processes that it may trace: its own, not the init process, whose mounts name folders of the host.
    mount("proc", proc, "proc", flags, "" if "hidden-processes" in without else "hidepid=ptraceable")
    # The kernel counts these for the person as well: without a limit, a program exhausts the person's own share.
    if "inotify-limit" not in without:
        _write(f"{proc}/sys/user/max_inotify_instances", str(inotify_instances))
    if "no-nested-namespaces" not in without:
        _write(f"{proc}/sys/user/max_user_namespaces", "0")
    # A process of uid 0 writes /proc/sys without any capability: core_pattern would run a program on the host.
    for name in _READ_ONLY_PROCESSES:
        if os.path.exists(f"{proc}/{name}") and "read-only-proc" not in without:
            mount(f"{proc}/{name}", f"{proc}/{name}", flags=BIND | RECURSIVE)
            mount("none", f"{proc}/{name}", flags=BIND | REMOUNT | READ_ONLY | flags)
    for name in _EMPTY_PROCESSES:
        if os.path.exists(f"{proc}/{name}"):
            mount("/dev/null", f"{proc}/{name}", flags=BIND)


def _mount_devices(folder: str) -> None:
    dev = f"{folder}/dev"
    for name in ("shm", "pts"):
        os.makedirs(f"{dev}/{name}")
    for name in _DEVICES:
        os.close(os.open(f"{dev}/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
        mount(f"/dev/{name}", f"{dev}/{name}", flags=BIND)
    mount("devpts", f"{dev}/pts", "devpts", NO_SUID | NO_EXECUTE, "newinstance,ptmxmode=0666,mode=620")
    for name, target in _DEVICE_LINKS:
        os.symlink(target, f"{dev}/{name}")


def _mount_layers(folder: str, layers: "dict[str, str]") -> None:
    # One mount below which all others lie, so that a supervisor detaches all of them at once.
    mount("tmpfs", folder + LAYERS, "tmpfs", NO_SUID | NO_DEVICES, "size=64k,mode=700")
    os.mkdir(folder + SYSTEM_PROCESSES)
    mount("proc", folder + SYSTEM_PROCESSES, "proc", NO_SUID | NO_DEVICES | NO_EXECUTE)
    os.mkdir(f"{folder}{LAYERS}/empty")
    for name, source in layers.items():
        os.mkdir(f"{folder}{LAYERS}/{name}")
        mount(source, f"{folder}{LAYERS}/{name}", flags=BIND)
        if name.endswith("-base"):
            syscalls.make_read_only(f"{folder}{LAYERS}/{name}")


def _bind(source: str, target: str, *, is_read_only: bool) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
    mount(source, target, flags=BIND | RECURSIVE)
    if is_read_only:
        syscalls.make_read_only(target)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
