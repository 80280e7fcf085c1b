"""Real repositories for the tests of git, and bundles made from them."""

import os
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.com",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.com",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
    "GIT_ALLOW_PROTOCOL": "file",
}


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Run git in a folder and return what it printed."""
    ended = subprocess.run(
        ["git", *arguments], cwd=folder, env=_ENVIRONMENT, input=stdin, capture_output=True, check=False
    )
    assert ended.returncode == 0, f"git {arguments}: {ended.stderr.decode()}"
    return ended.stdout.decode().strip()


def make_repository(folder: Path) -> Path:
    """A repository with one commit of `a.txt` on `main`."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    commit_file(folder, "a.txt", "one\n", "first")
    return folder


def commit_file(folder: Path, name: str, content: str, subject: str) -> str:
    """Commit one file and return the id of the commit."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content)
    git(folder, "add", "--", name)
    git(folder, "commit", "-q", "-m", subject)
    return git(folder, "rev-parse", "HEAD")


def hash_tree(folder: Path, *entries: tuple[str, str, str]) -> str:
    """Write a tree of (mode, name, blob or tree id), however invalid, and return its id."""
    content = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(id) for mode, name, id in entries)
    return git(folder, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=content)


def hash_blob(folder: Path, content: str) -> str:
    return git(folder, "hash-object", "-w", "--stdin", stdin=content.encode())


def commit_tree(folder: Path, tree: str, *parents: str) -> str:
    """Commit a tree on a branch `made` and return the id of the commit."""
    options = [option for parent in parents for option in ("-p", parent)]
    commit = git(folder, "commit-tree", tree, "-m", "made", *options)
    git(folder, "update-ref", "refs/heads/made", commit)
    return commit


def make_bundle(folder: Path, *revisions: str) -> bytes:
    """A bundle of these revisions, as git makes it."""
    ended = subprocess.run(
        ["git", "bundle", "create", "-q", "-", *revisions],
        cwd=folder,
        env=_ENVIRONMENT,
        capture_output=True,
        check=True,
    )
    return ended.stdout


def snapshot(folder: Path) -> dict[str, bytes | str]:
    """Every file below a folder with its content, and every link with its target."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = path.read_bytes()
    return found
