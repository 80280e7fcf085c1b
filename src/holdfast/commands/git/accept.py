"""Commits leave the sandbox as objects and one ref: offered from inside, checked, and accepted by the person.

No configuration, hook, tag or other ref comes along, and no file of the working tree changes.
"""

import hashlib
import re
from pathlib import Path

from holdfast.commands.contract import CommandRequest, CommandSandbox
from holdfast.commands.git.bundle import MAX_BUNDLE_BYTES, parse_bundle
from holdfast.commands.git.host_git import HostGit
from holdfast.commands.git.quarantine import OfferedCommits, check_known, examine, store_pack
from holdfast.commands.git.repository import GitRepository, find_repository
from holdfast.core import Value
from holdfast.core.errors import CommandError

_MAX_KNOWN = 200
"""How many of the host's branches are named as known, so that their objects are not sent."""
_SOURCE = re.compile(r"HEAD|[A-Za-z0-9_][A-Za-z0-9_./-]*")
_BUNDLE_SCRIPT = 'exec git bundle create -q - "$@" 2>/dev/null'


class CommitProposal(Value):
    """Commits that a program made, checked and ready to be accepted."""

    repository: str
    """The folder of the repository, relative to the workspace."""
    ref: str
    offered: OfferedCommits
    bundle_digest: str
    """SHA-256 of the bundle: what is accepted is what was shown."""
    bundle_bytes: int


class AcceptedCommits(Value):
    """The ref that was created or moved."""

    repository: str
    ref: str
    before: str
    """Empty if the ref is new."""
    after: str


def session_ref(session: str) -> str:
    """The one ref that commits of a session are accepted to."""
    return f"refs/heads/holdfast/{re.sub('[^A-Za-z0-9_-]', '-', session)}"


async def propose_commits(
    sandbox: CommandSandbox,
    git: HostGit,
    *,
    workspace: Path,
    scratch: Path,
    session: str,
    folder: str = ".",
    source: str = "HEAD",
) -> tuple[CommitProposal, bytes] | None:
    """Check the new commits of a repository in the sandbox; the second value is the bundle to keep. None if there are none.

    `source` is HEAD or a branch. Raises CommandError if the commits cannot be accepted.
    """
    if not _SOURCE.fullmatch(source) or ".." in source:
        raise CommandError(f"{source!r} is not a branch")
    repository = find_repository(workspace, folder)
    head = await _head_inside(sandbox, repository, source)
    if (await git.run("cat-file", "-e", f"{head}^{{commit}}", git_dir=repository.common_dir)).code == 0:
        return None
    bundle = await _bundle_inside(sandbox, repository, source, await _known(git, repository))
    parsed = parse_bundle(bundle)
    if parsed.head != head:
        raise CommandError("the branch moved while its commits were read", hint="propose the commits again")
    offered = await examine(git, repository, parsed, scratch=scratch)
    proposal = CommitProposal(
        repository=repository.folder,
        ref=session_ref(session),
        offered=offered,
        bundle_digest=hashlib.sha256(bundle).hexdigest(),
        bundle_bytes=len(bundle),
    )
    return proposal, bundle


async def accept_commits(
    git: HostGit, proposal: CommitProposal, bundle: bytes, *, workspace: Path, replaces: str = ""
) -> AcceptedCommits:
    """Store the objects of a proposal and move its ref. Only the person may ask for this.

    An existing ref moves forward, or back from `replaces`: the head that was last accepted from this session. Raises CommandError.
    """
    if hashlib.sha256(bundle).hexdigest() != proposal.bundle_digest:
        raise CommandError("the bundle is not the one that was proposed", hint="propose the commits again")
    repository = find_repository(workspace, proposal.repository)
    parsed = parse_bundle(bundle)
    await check_known(git, repository, parsed)
    _check_ref_place(repository, proposal.ref)
    before = await _resolve(git, repository, proposal.ref)
    await store_pack(git, repository.common_dir, parsed)
    if (
        before
        and before not in (replaces, parsed.head)
        and not await _is_ancestor(git, repository, before, parsed.head)
    ):
        raise CommandError(
            f"the branch {_short(proposal.ref)} has commits that are not in the proposal",
            hint=f"rename it first: git branch -m {_short(proposal.ref)} NEW-NAME",
        )
    await git.check(
        "update-ref", "--no-deref", "-m", "holdfast: accept commits", proposal.ref, parsed.head,
        before or "0" * repository.id_length, git_dir=repository.common_dir,
    )  # fmt: skip
    return AcceptedCommits(repository=repository.folder, ref=proposal.ref, before=before, after=parsed.head)


async def _head_inside(sandbox: CommandSandbox, repository: GitRepository, source: str) -> str:
    name = source if source == "HEAD" else f"refs/heads/{source}"
    output = await _run_inside(
        sandbox, repository, ("git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"), max_bytes=200
    )
    head = (output or b"").decode("ascii", "replace").strip()
    if not re.fullmatch(rf"[0-9a-f]{{{repository.id_length}}}", head):
        raise CommandError(f"there is no commit at {source!r} in the sandbox")
    return head


async def _bundle_inside(
    sandbox: CommandSandbox, repository: GitRepository, source: str, known: list[str]
) -> bytes:
    name = source if source == "HEAD" else f"refs/heads/{source}"
    argv = ("sh", "-c", _BUNDLE_SCRIPT, "sh", name, *(f"^{id}" for id in known))
    output = await _run_inside(sandbox, repository, argv, max_bytes=MAX_BUNDLE_BYTES)
    if output is None:
        raise CommandError("git could not pack the commits in the sandbox", hint="run: git fsck")
    return output


async def _run_inside(
    sandbox: CommandSandbox, repository: GitRepository, argv: tuple[str, ...], *, max_bytes: int
) -> bytes | None:
    """The output of a program in the sandbox, at most one byte more than the limit; None if it failed."""
    kept = bytearray()

    def keep(data: bytes) -> None:
        kept.extend(data[: max_bytes + 1 - len(kept)])

    request = CommandRequest(argv=argv, cwd=repository.folder, environment={})
    outcome = await sandbox.run(request, on_output=keep)
    return bytes(kept) if outcome.code == 0 else None


async def _known(git: HostGit, repository: GitRepository) -> list[str]:
    """The newest tips of the host's branches, and its HEAD."""
    listing = await git.check(
        "for-each-ref", f"--count={_MAX_KNOWN}", "--sort=-creatordate", "--format=%(objectname) %(objecttype)",
        "refs/heads", "refs/remotes", git_dir=repository.common_dir,
    )  # fmt: skip
    pairs = (line.split(" ") for line in listing.decode().splitlines())
    return list(dict.fromkeys(id for id, kind in pairs if kind == "commit"))


async def _resolve(git: HostGit, repository: GitRepository, ref: str) -> str:
    found = await git.run("rev-parse", "--verify", "--quiet", ref, git_dir=repository.common_dir)
    return found.output.decode().strip() if found.code == 0 else ""


async def _is_ancestor(git: HostGit, repository: GitRepository, old: str, new: str) -> bool:
    return (await git.run("merge-base", "--is-ancestor", old, new, git_dir=repository.common_dir)).code == 0


def _check_ref_place(repository: GitRepository, ref: str) -> None:
    """Refuse a ref that somebody works on, and a folder of refs that leads elsewhere."""
    common = Path(repository.common_dir)
    for head in (common / "HEAD", *common.glob("worktrees/*/HEAD")):
        if head.is_file() and head.read_bytes()[:4_096].strip() == f"ref: {ref}".encode():
            raise CommandError(
                f"the branch {_short(ref)} is checked out",
                hint="switch to another branch first: git switch -",
            )
    place = common
    for part in Path(ref).parts:
        place = place / part
        if place.is_symlink():
            raise CommandError(f"{str(place)!r} is a symbolic link")


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/")
