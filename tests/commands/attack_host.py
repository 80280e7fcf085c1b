"""Plays the attacks of attacks.json in throwaway namespaces: a copy of the machine, in which a wall that fails harms nothing.

Run as a program: `python attack_host.py FOLDER`, with jobs as JSON on standard input and a line of results for each on standard
output. Each job has a copy of its own, so that what one breaks does not mislead the next.
The root is an overlay over the real one whose changes live in memory. As root, all of it is in a user namespace of its own; as
an ordinary user the program gives up root before it opens a sandbox.
"""

import asyncio
import ctypes
import hashlib
import json
import os
import re
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.commands import (
    CollectedChanges,
    CommandOutcome,
    CommandRequest,
    CommandSandbox,
    SandboxSettings,
    open_sandbox,
    probe_sandbox,
)
from holdfast.commands.init import syscalls
from holdfast.commands.init.init_main import start_loopback

NOBODY = 65534
HERE = Path(sys.argv[1])
"""In memory, in the throwaway namespaces."""
OUTSIDE, WORKSPACE, STATE, HOME = HERE / "outside", HERE / "workspace", HERE / "state-of-host", HERE / "home"
SHM_KEY = 0x4846
DISK_MB = 200
COLLECT_CPU_SECONDS = 2.0
"""Time of our own process: a busy machine does not count."""
ODD_NAMES = {"a\nb", " ", "-rf", r"a\\b", "x\u202etxt"}


def enter(folder: str, user: str) -> None:
    """Enter the throwaway namespaces and become the user. Returns in a new process."""
    is_root = os.geteuid() == 0
    namespaces = syscalls.NEW_MOUNTS | syscalls.NEW_PIDS | syscalls.NEW_IPC | syscalls.NEW_NETWORK
    if is_root:
        syscalls.unshare(namespaces)
    else:
        _enter_user_namespace(namespaces)
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    syscalls.mount("none", "/", flags=syscalls.RECURSIVE | syscalls.PRIVATE)
    syscalls.mount("tmpfs", folder, "tmpfs", 0, "mode=755")
    syscalls.mount("proc", "/proc", "proc")
    start_loopback()
    if is_root:
        _enter_copy(folder)
    if user == "root":
        _enter_user_namespace(syscalls.NEW_MOUNTS)
    elif is_root:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def _enter_user_namespace(others: int) -> None:
    uid, gid = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.NEW_USER | others)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        Path("/proc/self", name).write_text(text)


def _enter_copy(folder: str) -> None:
    """Make an overlay over the real root the root: what an attack changes lives in memory."""
    for name in ("upper", "work", "root"):
        os.mkdir(f"{folder}/{name}")
    root = f"{folder}/root"
    layers = f"lowerdir=/,upperdir={folder}/upper,workdir={folder}/work,userxattr"
    syscalls.mount("overlay", root, "overlay", 0, layers)
    syscalls.mount("proc", f"{root}/proc", "proc")
    syscalls.mount("tmpfs", f"{root}/dev", "tmpfs", 0, "mode=755")
    for name in ("null", "zero", "full", "random", "urandom"):
        Path(root, "dev", name).touch()
        syscalls.mount(f"/dev/{name}", f"{root}/dev/{name}", flags=syscalls.BIND)
    for name in ("dev/shm", "dev/pts"):
        Path(root, name).mkdir(exist_ok=True)
    Path(f"{root}{folder}").mkdir(parents=True, exist_ok=True)
    syscalls.mount("tmpfs", f"{root}{folder}", "tmpfs", 0, "mode=777")
    # The interpreter and the folder may lie in folders of root alone; this is a copy.
    for path in (Path(root, "root"), *(Path(f"{root}{parent}") for parent in Path(folder).parents)):
        path.chmod(0o755)
    syscalls.enter_root(root)


def plant() -> tuple[list[socket.socket], int]:
    """Put what an attack looks for where it must not find it. Returns what must stay open, and a port."""
    for folder in (OUTSIDE, WORKSPACE / "src", HOME):
        folder.mkdir(parents=True)
    (OUTSIDE / "secret").write_text("SECRET-42\n")
    for name, text in (
        ("a.txt", "a\n"),
        ("b.txt", "b\n"),
        (".env", "TOKEN=SECRET-42\n"),
        ("src/x.py", "x = 1\n"),
    ):
        (WORKSPACE / name).write_text(text)
    (HOME / ".bashrc").write_text("# person\n")
    subprocess.run(["git", "-C", str(WORKSPACE), "init", "-q"], check=True)
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0holdfast-attack")
    abstract.listen()
    named = socket.socket(socket.AF_UNIX)
    named.bind(str(OUTSIDE / "sock"))
    named.listen()
    os.environ.update(HOME=str(HOME), HOST_KEY="SECRET-42", SSH_AUTH_SOCK="/tmp/ssh-agent")
    ctypes.CDLL(None).shmget(SHM_KEY, 4096, 0o1666)
    return [server, abstract, named], server.getsockname()[1]


def fingerprint(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found.update(
            f"{path} {status.st_mode} {status.st_mtime_ns if stat.S_ISREG(status.st_mode) else 0}".encode()
        )
        if stat.S_ISREG(status.st_mode):
            found.update(path.read_bytes())
    return found.hexdigest()


class Game:
    """One sandbox and the attacks on it."""

    def __init__(self, sandbox: CommandSandbox, port: int) -> None:
        self.sandbox = sandbox
        self.words = {
            "{OUTSIDE}": str(OUTSIDE),
            "{STATE}": str(STATE),
            "{STATE_NAME}": STATE.name,
            "{ABSTRACT}": "holdfast-attack",
            "{PORT}": str(port),
            "{SHM}": str(SHM_KEY),
        }
        self.before = {folder: fingerprint(folder) for folder in (WORKSPACE, OUTSIDE, HOME)}
        self.system = Path("/usr/lib/os-release").read_bytes()

    def filled(self, text: str) -> str:
        for word, value in self.words.items():
            text = text.replace(word, value)
        return text

    async def play(self, attack: dict[str, Any]) -> str:
        """Play one attack; returns what went wrong, or nothing."""
        await self.sandbox.show([], hidden=[".env"])
        output: list[bytes] = []
        request = CommandRequest(
            argv=("bash", "-c", self.filled(attack["command"])), environment={}, timeout_seconds=25.0
        )
        free = os.statvfs(STATE)
        outcome = await self.sandbox.run(request, on_output=output.append)
        text = b"".join(output).decode(errors="replace")
        if "sign" in attack and re.search(self.filled(attack["sign"]), text, re.MULTILINE):
            return f"{attack['must_not']}: {text[-300:]}"
        # A sign, or a wall that stopped the attack, is proof that it ran, also where that took until its time limit on a busy machine.
        if "was not started" in text or (outcome.is_timed_out and not outcome.stopped_because):
            return f"the attack did not run: {outcome} {text[-300:]}"
        began = time.process_time()
        changes = await self.sandbox.collect()
        if time.process_time() - began > COLLECT_CPU_SECONDS:
            return "the collection took too long"
        if any(effect.path.startswith((".env", "..")) for effect in changes.effects):
            return "a hidden file is proposed"
        for folder, digest in self.before.items():
            if fingerprint(folder) != digest:
                return f"{folder} changed"
        if Path("/usr/lib/os-release").read_bytes() != self.system or list(Path("/usr").glob("x")):
            return "the system changed"
        return await self.check(attack.get("check", ""), free, outcome, changes)

    async def check(
        self, name: str, free: os.statvfs_result, outcome: CommandOutcome, changes: CollectedChanges
    ) -> str:
        """What the host must find after the attack, besides what holds after every one."""
        alive = await self.sandbox.run(
            CommandRequest(argv=("true",), environment={}), on_output=lambda _: None
        )
        if alive.code != 0:
            return f"the sandbox is dead: {alive}"
        if name == "disk_kept":
            now = os.statvfs(STATE)
            taken = (free.f_bavail - now.f_bavail) * now.f_frsize >> 20
            if taken > DISK_MB * 2 or outcome.stopped_because != "disk":
                return f"{taken} MiB of the disk are gone: {outcome}"
        if name == "no_raw_overlay_xattr":
            raw = {
                "user.overlay.opaque",
                "user.overlay.redirect",
                "user.overlay.whiteout",
                "user.overlay.metacopy",
            }
            marked = [path for path in STATE.rglob("ox") if set(os.listxattr(path)) & raw]
            if marked:
                return f"raw marks of the overlay: {marked}"
        if name == "odd_names":
            proposed = {effect.path for effect in changes.effects}
            if proposed != ODD_NAMES or [each.path for each in changes.not_collected] != [r"\udcff\udcfe"]:
                return f"odd names are proposed otherwise: {changes}"
        if name == "no_strays" and outcome.left_processes == 0:
            return "nothing was left behind, so nothing was proved"
        return ""


async def main(job: dict[str, Any]) -> dict[str, str]:
    kept, port = plant()
    status = await probe_sandbox(HERE / "cache")
    if status.tier != "full":
        return {"": f"no full sandbox stands: {status.missing}"}
    settings = SandboxSettings(
        memory_mb=400,
        disk_mb=DISK_MB,
        temporary_mb=64,
        processes=200,
        removed_walls=tuple(job["without"]),
    )
    sandbox = await open_sandbox(WORKSPACE, STATE, status=status, settings=settings)
    results = {}
    try:
        game = Game(sandbox, port)
        for attack in job["attacks"]:
            results[attack["id"]] = await game.play(attack)
    finally:
        await sandbox.close()
        for each in kept:
            each.close()
    return results


def run_apart(job: dict[str, Any]) -> None:
    """Run one job in a copy of the machine of its own, and print its results as one line."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        enter(sys.argv[1], job["user"])
        results = asyncio.run(main(job))
    except OSError as error:
        results = {"": f"throwaway namespaces cannot be made here: {error}"}
    print(json.dumps(results), flush=True)
    os._exit(0)


if __name__ == "__main__":
    for given in json.load(sys.stdin):
        run_apart(given)
