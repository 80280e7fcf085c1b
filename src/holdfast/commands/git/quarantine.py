"""A quarantine for commits from the sandbox: a separate bare repository that borrows the objects of the real one.

Git unpacks and checks the pack here (`index-pack --strict`, which `git fetch` of a bundle does only in recent versions), and the
commits are listed here, before anything reaches the person's repository.
"""

import contextlib
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Literal

from holdfast.commands.git.bundle import MAX_BUNDLE_BYTES, Bundle
from holdfast.commands.git.host_git import HostGit
from holdfast.commands.git.repository import GitRepository
from holdfast.core import Value
from holdfast.core.errors import CommandError

MAX_COMMITS = 2_000
MAX_OBJECTS = 200_000
MAX_FILES = 10_000
MAX_MERGES = 100
MAX_OBJECT_BYTES = 256 << 20
MAX_TOTAL_BYTES = 1 << 30
_LISTED_COMMITS = 200
_LIST_BYTES = 64 << 20
_EMPTY_TREES = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The id of a tree without files, by the format of object ids. Git knows it in every repository."""


class OfferedCommit(Value):
    """One commit as a person sees it before accepting."""

    id: str
    author: str
    subject: str
    time_s: int


class OfferedFile(Value):
    """A file that the commits change, relative to the repository. Judged as a write or a deletion of that path."""

    path: str
    kind: Literal["written", "deleted"]
    mode: str
    """The mode in git's terms: `100644`, `100755`, `120000` for a link, `160000` for a submodule."""


class OfferedCommits(Value):
    """What a bundle holds, after every object was checked."""

    head: str
    count: int
    commits: tuple[OfferedCommit, ...]
    """The newest, at most 200."""
    files: tuple[OfferedFile, ...]
    """Every path that any of the commits changes."""
    object_count: int
    total_bytes: int


async def examine(
    git: HostGit, repository: GitRepository, bundle: Bundle, *, scratch: Path
) -> OfferedCommits:
    """Check every object of a bundle and list its commits. Raises CommandError if anything is not as it must be."""
    await check_known(git, repository, bundle)
    async with _quarantine(repository, scratch) as git_dir:
        ids = await _unpack(git, git_dir, bundle)
        reachable = await _reachable(git, git_dir, bundle)
        total = await _check_sizes(git, git_dir, ids)
        await _check_unreachable(git, repository, ids - reachable)
        commits, count = await _commits(git, git_dir, bundle)
        files = await _files(git, git_dir, bundle)
    return OfferedCommits(
        head=bundle.head, count=count, commits=commits, files=files, object_count=len(ids), total_bytes=total
    )


async def check_known(git: HostGit, repository: GitRepository, bundle: Bundle) -> None:
    """Check that the repository has what the bundle builds on."""
    if bundle.object_format != repository.object_format:
        raise CommandError(
            f"the bundle uses {bundle.object_format}, the repository {repository.object_format}"
        )
    types = await _types(git, repository.common_dir, bundle.prerequisites)
    missing = [id for id in bundle.prerequisites if types.get(id) != "commit"]
    if missing:
        raise CommandError(f"the commits build on {missing[0][:12]}, which the repository does not have")


async def store_pack(git: HostGit, git_dir: str, bundle: Bundle) -> str:
    """Store and check the objects of a bundle in a repository, and return the name of the pack."""
    output = await git.check(
        "index-pack", "--stdin", "--fix-thin", "--strict", f"--max-input-size={MAX_BUNDLE_BYTES}",
        git_dir=git_dir, stdin=bundle.pack,
    )  # fmt: skip
    name = re.fullmatch(rb"pack\t([0-9a-f]{40,64})\n", output)
    if name is None:
        raise CommandError("the bundle does not end with its pack")
    return name[1].decode()


@contextlib.asynccontextmanager
async def _quarantine(repository: GitRepository, scratch: Path) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="commits-", dir=scratch) as folder:
        make_borrowing_repository(Path(folder), repository)
        yield folder


def make_borrowing_repository(folder: Path, repository: GitRepository) -> None:
    """Write an empty bare repository that finds the objects of another. None of its configuration is borrowed."""
    for name in ("objects/info", "objects/pack", "refs/heads"):
        (folder / name).mkdir(parents=True)
    version = 1 if repository.object_format == "sha256" else 0
    extension = f"[extensions]\n\tobjectformat = {repository.object_format}\n" if version else ""
    (folder / "config").write_text(
        f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}"
    )
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    (folder / "objects/info/alternates").write_text(f"{repository.common_dir}/objects\n")
    shallow = Path(repository.common_dir, "shallow")
    if shallow.is_file():
        shutil.copyfile(shallow, folder / "shallow")


async def _unpack(git: HostGit, git_dir: str, bundle: Bundle) -> set[str]:
    name = await store_pack(git, git_dir, bundle)
    index = Path(git_dir, "objects", "pack", f"pack-{name}.idx").read_bytes()
    listing = await git.check(
        "show-index",
        f"--object-format={bundle.object_format}",
        git_dir=git_dir,
        stdin=index,
        max_output=_LIST_BYTES,
    )
    ids = {line.split()[1].decode() for line in listing.splitlines()}
    if len(ids) > MAX_OBJECTS:
        raise CommandError(f"the commits have more than {MAX_OBJECTS:,} objects")
    return ids


async def _reachable(git: HostGit, git_dir: str, bundle: Bundle) -> set[str]:
    """Every object that the head needs beyond the prerequisites. Git fails if one is missing."""
    listing = await git.check(
        "rev-list", "--objects", "--stdin", git_dir=git_dir, stdin=_range(bundle), max_output=_LIST_BYTES
    )
    return {line.split(b" ", 1)[0].decode() for line in listing.splitlines()}


async def _check_sizes(git: HostGit, git_dir: str, ids: Iterable[str]) -> int:
    listing = await git.check(
        "cat-file", "--batch-check=%(objectsize)", "--buffer",
        git_dir=git_dir, stdin="".join(f"{id}\n" for id in ids).encode(), max_output=_LIST_BYTES,
    )  # fmt: skip
    sizes = [int(line) for line in listing.splitlines()]
    if sizes and max(sizes) > MAX_OBJECT_BYTES:
        raise CommandError(f"a file in the commits is larger than {MAX_OBJECT_BYTES >> 20} MiB")
    if sum(sizes) > MAX_TOTAL_BYTES:
        raise CommandError(f"the commits unpack to more than {MAX_TOTAL_BYTES >> 20} MiB")
    return sum(sizes)


async def _check_unreachable(git: HostGit, repository: GitRepository, ids: set[str]) -> None:
    """Refuse objects that the head does not need; bases of deltas that the repository has are fine."""
    types = await _types(git, repository.common_dir, tuple(ids))
    if any(types.get(id) is None for id in ids):
        raise CommandError("the bundle has objects that do not belong to its commits")


async def _types(git: HostGit, git_dir: str, ids: tuple[str, ...]) -> dict[str, str]:
    """By id: the type of each object that the repository has."""
    if not ids:
        return {}
    listing = await git.check(
        "cat-file", "--batch-check=%(objectname) %(objecttype)", "--buffer",
        git_dir=git_dir, stdin="".join(f"{id}\n" for id in ids).encode(), max_output=_LIST_BYTES,
    )  # fmt: skip
    pairs = (line.decode().split(" ", 1) for line in listing.splitlines())
    return {id: kind for id, kind in pairs if kind != "missing"}


async def _commits(git: HostGit, git_dir: str, bundle: Bundle) -> tuple[tuple[OfferedCommit, ...], int]:
    count = int(await git.check("rev-list", "--count", "--stdin", git_dir=git_dir, stdin=_range(bundle)))
    if count > MAX_COMMITS:
        raise CommandError(f"there are more than {MAX_COMMITS:,} commits")
    listing = await git.check(
        "log", "-z", f"--max-count={_LISTED_COMMITS}", "--no-mailmap", "--no-color", "--no-decorate", "--stdin",
        "--format=%H%n%an <%ae>%n%at%n%s", git_dir=git_dir, stdin=_range(bundle), max_output=_LIST_BYTES,
    )  # fmt: skip
    commits = []
    for entry in listing.decode("utf-8", "replace").split("\0")[:-1]:
        id, author, time, subject = entry.split("\n", 3)
        commits.append(
            OfferedCommit(id=id, author=author[:200], subject=subject[:500], time_s=int(time) if time else 0)
        )
    return tuple(commits), count


async def _files(git: HostGit, git_dir: str, bundle: Bundle) -> tuple[OfferedFile, ...]:
    """The paths that the commits change; of a merge, those that differ from all its parents, and what it takes back of one."""
    ids = await git.check("rev-list", "--reverse", "--stdin", git_dir=git_dir, stdin=_range(bundle))
    listing = await git.check(
        "diff-tree", "--stdin", "--no-commit-id", "-r", "-c", "--root", "--raw", "-z", "--no-renames", "--no-ext-diff",
        git_dir=git_dir, stdin=ids, max_output=_LIST_BYTES,
    )  # fmt: skip
    files = await _taken_back(git, git_dir, bundle) | _changed_files(listing)
    if len(files) > MAX_FILES:
        raise CommandError(f"the commits change more than {MAX_FILES:,} files")
    return tuple(files[path] for path in sorted(files))


async def _taken_back(git: HostGit, git_dir: str, bundle: Bundle) -> dict[str, OfferedFile]:
    """Files in which a merge does not keep what one of its parents changed since their common base.

    A merge that takes the other parent's version of such a file reverts a change, for example with an old commit as parent.
    """
    merges = await git.check(
        "rev-list", "--min-parents=2", "--parents", "--stdin", git_dir=git_dir, stdin=_range(bundle)
    )
    lines = merges.decode().splitlines()
    if len(lines) > MAX_MERGES:
        raise CommandError(f"there are more than {MAX_MERGES} merges among the commits")
    files: dict[str, OfferedFile] = {}
    for merge, *parents in map(str.split, lines):
        for parent in dict.fromkeys(parents):
            others = [each for each in parents if each != parent]
            found = await git.run("merge-base", "--all", parent, *others, git_dir=git_dir)
            bases = found.output.decode().split() or [_EMPTY_TREES[bundle.object_format]]
            changed = [await _difference(git, git_dir, base, parent) for base in bases]
            lost = await _difference(git, git_dir, parent, merge)
            files |= {path: lost[path] for path in lost if any(path in each for each in changed)}
    return files


async def _difference(git: HostGit, git_dir: str, before: str, after: str) -> dict[str, OfferedFile]:
    listing = await git.check(
        "diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-ext-diff", before, after,
        git_dir=git_dir, max_output=_LIST_BYTES,
    )  # fmt: skip
    return _changed_files(listing)


def _changed_files(listing: bytes) -> dict[str, OfferedFile]:
    """By path: the files in the output of `diff-tree --raw -z`."""
    fields = listing.decode("utf-8", "surrogateescape").split("\0")[:-1]
    files: dict[str, OfferedFile] = {}
    for raw, path in zip(fields[::2], fields[1::2], strict=True):
        parents = len(raw) - len(raw.lstrip(":"))
        mode = raw.lstrip(":").split(" ")[parents]  # the modes in the parents, then the mode in the commit
        files[path] = OfferedFile(path=path, kind="deleted" if mode == "000000" else "written", mode=mode)
    return files


def _range(bundle: Bundle) -> bytes:
    return "".join(f"{line}\n" for line in (bundle.head, *(f"^{id}" for id in bundle.prerequisites))).encode()
