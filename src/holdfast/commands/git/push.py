"""`git push` outside the sandbox, behind the gate: one branch to the addresses that were judged.

Git runs in an empty repository that borrows the objects, so no configuration and no hook of the real one takes part. Of the
person's own configuration it sees only how to authenticate (`person_config`), and no setting that sends a push elsewhere.
"""

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.commands.git.clean_config import without_user_info
from holdfast.commands.git.config_text import ConfigEntry, render_config
from holdfast.commands.git.host_git import GitOutput, HostGit
from holdfast.commands.git.person_config import passed_variables, read_honoured_settings
from holdfast.commands.git.quarantine import make_borrowing_repository
from holdfast.commands.git.repository import GitRepository, find_repository
from holdfast.core import Value, escape_to_one_line
from holdfast.core.errors import CommandError

_PROTOCOLS = "https:ssh:http"
_ADDRESS = re.compile(r"(https?|ssh|git\+ssh|ssh\+git)://|(?![^/]*://|[A-Za-z0-9+.-]+::)[^/:]+:")
"""What git takes for an address of these protocols, `host:path` included."""
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_MAX_OUTPUT = 1 << 16
_FIXED = (
    ("core", "hookspath", "/dev/null"),
    ("push", "gpgsign", "false"),
    ("push", "recursesubmodules", "no"),
    ("push", "followtags", "false"),
    ("http", "followredirects", "false"),
)
"""Settings that apply whatever the person's configuration says. A redirect would lead to an address that nobody judged."""


class PushedBranch(Value):
    """What one address did with the branch."""

    url: str
    """Without a user name or a password."""
    branch: str
    commit: str
    is_pushed: bool
    message: str = ""
    """What git or the server said, if it refused."""


async def push_branch(
    git: HostGit,
    urls: Sequence[str],
    *,
    workspace: Path,
    scratch: Path,
    environment: Mapping[str, str],
    source: str,
    branch: str,
    folder: str = ".",
) -> tuple[PushedBranch, ...]:
    """Push a branch of the person's repository to each address, which the caller has had judged. Raises CommandError.

    `source` is a branch of the repository, such as `holdfast/SESSION`. A push only moves a branch forward.
    """
    repository, commit = await find_commit(
        git, workspace=workspace, source=source, branch=branch, folder=folder
    )
    settings = await read_honoured_settings(git, repository, environment)
    pushed = []
    for url in urls:
        ended = await _push(
            git, repository, settings, environment, scratch, url, f"{commit}:refs/heads/{branch}"
        )
        is_pushed = ended.code == 0
        message = "" if is_pushed else _refusal(ended)
        pushed.append(
            PushedBranch(
                url=without_user_info(url), branch=branch, commit=commit, is_pushed=is_pushed, message=message
            )
        )
    return tuple(pushed)


async def find_commit(
    git: HostGit, *, workspace: Path, source: str, branch: str, folder: str = "."
) -> tuple[GitRepository, str]:
    """The repository and the commit that a push of `source` to `branch` starts from. Raises CommandError."""
    for name in (source, branch):
        if not _BRANCH.fullmatch(name) or ".." in name or "//" in name or name.endswith((".lock", "/", ".")):
            raise CommandError(f"{name!r} is not the name of a branch")
    repository = find_repository(workspace, folder)
    found = await git.run(
        "rev-parse", "--verify", "--quiet", f"refs/heads/{source}^{{commit}}", git_dir=repository.common_dir
    )
    if found.code != 0:
        raise CommandError(
            f"there is no branch {source!r} to push",
            hint="commits made in the sandbox must be accepted before they can be pushed",
        )
    return repository, found.output.decode().strip()


def check_address(url: str) -> None:
    """Check that a push can go to an address. Raises CommandError."""
    if not _ADDRESS.match(url):
        raise CommandError(
            f"{without_user_info(url)!r} can never be pushed to: git.push reaches other machines by https, http or ssh only",
            hint="name a remote with such an address, or ask the person to push with their own git",
        )


async def _push(
    git: HostGit,
    repository: GitRepository,
    settings: list[ConfigEntry],
    environment: Mapping[str, str],
    scratch: Path,
    url: str,
    refspec: str,
) -> GitOutput:
    with tempfile.TemporaryDirectory(prefix="push-", dir=scratch) as name:
        folder = Path(name)
        make_borrowing_repository(folder, repository)
        fixed = [
            ConfigEntry(section=section, subsection=None, name=key, value=value)
            for section, key, value in _FIXED
        ]
        config = folder / "person.config"
        config.touch(mode=0o600)
        config.write_bytes(render_config([*settings, *fixed]).encode("utf-8", "surrogateescape"))
        return await git.run_with(
            [
                f"--git-dir={folder}", "push", "--porcelain", "--no-verify", "--no-signed", "--no-force",
                "--no-recurse-submodules", "--no-follow-tags", "--receive-pack=git-receive-pack", "--end-of-options",
                url, refspec,
            ],
            environment={
                **passed_variables(environment),
                "LC_ALL": "C",
                "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
                "GIT_CONFIG_GLOBAL": str(config),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_TERMINAL_PROMPT": "0",
                "SSH_ASKPASS_REQUIRE": "never",
            },
            max_output=_MAX_OUTPUT,
        )  # fmt: skip


def _refusal(ended: GitOutput) -> str:
    """The lines that say why. Secrets in addresses are removed; the rest is the server's own words."""
    lines = [*ended.output.decode("utf-8", "replace").splitlines(), *ended.errors.splitlines()]
    errors = [line for line in lines if line.startswith(("!", "fatal:", "error:", "remote:"))] or lines[-3:]
    return escape_to_one_line(without_user_info(" / ".join(errors))[:1_000])
