"""Git remotes: resolved as git resolves them, and git itself is asked whether that is so."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import ArgumentRoles, JsonObject, Tool, UrlTarget
from holdfast.policy import LexicalPaths, Resolver, targets_of
from holdfast.policy.git_remotes import MAX_REMOTES, GitSettings, canonical_remote
from holdfast.policy.targets import MAX_BYTES

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
PUSH = Tool(
    name="git.push",
    roles={
        "path": ArgumentRoles(default=("read-path",)),
        "remote": ArgumentRoles(default=("git-remote-url",)),
    },
)


def git(folder: Path, *arguments: str) -> str:
    alone = {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["git", "-C", folder, *arguments], capture_output=True, text=True, env=alone, check=True
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    return tmp_path


async def hosts(repository: Path, remote: str | None = None, resolver: Resolver | None = None) -> list[str]:
    """Where a call leads; empty for what has a problem."""
    arguments: JsonObject = {"path": "."} if remote is None else {"path": ".", "remote": remote}
    targets = await (resolver or Resolver()).targets(PUSH, arguments, LexicalPaths(str(repository)))
    return [target.host for target in targets if isinstance(target, UrlTarget)]


SETTINGS: list[list[tuple[str, str]]] = [
    [("remote.origin.url", "https://github.com/o/r.git")],
    [("remote.origin.url", "https://github.com/o/r"), ("remote.origin.pushurl", "https://evil.example/o/r")],
    [
        ("remote.origin.url", "https://github.com/o/r"),
        ("url.https://evil.example/.pushInsteadOf", "https://github.com/"),
    ],
    [("remote.origin.url", "gh:o/r"), ("url.https://github.com/.insteadOf", "gh:")],
    [
        ("remote.origin.url", "gh:o/r"),
        ("url.https://github.com/.insteadOf", "gh:"),
        ("url.git@evil.example:.pushInsteadOf", "gh:"),
    ],
    [
        ("remote.origin.url", "https://github.com/o/r"),
        ("remote.origin.pushurl", "gh:o/r"),
        ("url.https://evil.example/.insteadOf", "gh:"),
        ("url.https://never.example/.pushInsteadOf", "gh:"),
    ],
    [
        ("remote.origin.url", "https://github.com/o/r"),
        ("url.https://short.example/.insteadOf", "https://"),
        ("url.https://long.example/.insteadOf", "https://github.com/"),
    ],
    [("remote.origin.url", "https://a.example/r"), ("remote.origin.url", "https://b.example/r")],
    [
        ("remote.origin.url", "https://a.example/r"),
        ("remote.origin.url", "https://b.example/r"),
        ("url.https://c.example/.pushInsteadOf", "https://b.example/"),
    ],
    [("remote.Origin.URL", "https://other.example/"), ("REMOTE.origin.Url", "https://this.example/")],
]


@needs_git
@pytest.mark.parametrize("settings", SETTINGS)
def test_w4_a_push_goes_where_git_says_it_goes(settings: list[tuple[str, str]], repository: Path) -> None:
    for key, value in settings:
        git(repository, "config", "--add", key, value)
    config = GitSettings.parse(git(repository, "config", "--list", "-z"))
    assert (
        list(config.push_urls("origin"))
        == git(repository, "remote", "get-url", "--push", "--all", "origin").split()
    )
    assert (
        list(config.fetch_urls("origin")) == git(repository, "remote", "get-url", "--all", "origin").split()
    )


@needs_git
async def test_w4_a_hidden_push_url_is_among_the_targets(repository: Path) -> None:
    git(repository, "remote", "add", "origin", "https://github.com/o/r")
    git(repository, "config", "remote.origin.pushurl", "git@evil.example:o/r")
    assert await hosts(repository, "origin") == ["evil.example", "github.com"]


@needs_git
async def test_w4_a_url_that_is_rewritten_is_judged_by_where_it_leads(repository: Path) -> None:
    git(repository, "config", "url.https://evil.example/.insteadOf", "https://github.com/")
    assert await hosts(repository, "https://github.com/o/r") == ["evil.example"]


@needs_git
async def test_w4_without_a_remote_every_remote_is_a_target(repository: Path) -> None:
    git(repository, "remote", "add", "origin", "https://github.com/o/r")
    git(repository, "remote", "add", "other", "https://evil.example/o/r")
    assert await hosts(repository) == ["github.com", "evil.example"]


@needs_git
@pytest.mark.parametrize(
    "setting", ["branch.main.remote", "branch.main.pushRemote", "remote.pushDefault", "branch.x.y.remote"]
)
async def test_w4_without_a_remote_an_address_that_git_would_choose_is_a_target(
    setting: str, repository: Path
) -> None:
    git(repository, "remote", "add", "origin", "https://github.com/o/r")
    git(repository, "config", setting, "https://evil.example/r")
    assert "evil.example" in await hosts(repository)


@needs_git
async def test_w4_a_remote_group_is_every_remote_in_it(repository: Path) -> None:
    git(repository, "remote", "add", "origin", "https://github.com/o/r")
    git(repository, "remote", "add", "other", "https://evil.example/o/r")
    git(repository, "config", "remotes.origin", "other")
    assert await hosts(repository, "origin") == ["github.com", "evil.example"]
    git(repository, "config", "remotes.both", "other origin")
    assert await hosts(repository, "both") == ["evil.example", "github.com"]


@needs_git
async def test_w4_a_remote_with_a_helper_has_a_problem(repository: Path) -> None:
    git(repository, "remote", "add", "origin", "https://github.com/o/r")
    git(repository, "config", "remote.origin.vcs", "ext")
    assert await hosts(repository, "origin") == [""]


@needs_git
async def test_w4_a_name_that_looks_like_an_address_is_asked_about(repository: Path) -> None:
    (repository / ".git" / "remotes").mkdir(exist_ok=True)
    (repository / ".git" / "remotes" / "github.com:r").write_text("URL: https://evil.example/r\n")
    assert git(repository, "remote", "get-url", "github.com:r").strip() == "https://evil.example/r"
    assert await hosts(repository, "github.com:r") == [""]


@needs_git
async def test_w4_before_a_clone_the_settings_above_its_folder_count(repository: Path) -> None:
    git(repository, "config", "url.https://evil.example/.insteadOf", "https://github.com/")
    arguments: JsonObject = {"path": "a/b/new", "remote": "https://github.com/o/r"}
    targets = await Resolver().targets(PUSH, arguments, LexicalPaths(str(repository)))
    assert [target.host for target in targets if isinstance(target, UrlTarget)] == ["evil.example"]


@needs_git
@pytest.mark.parametrize("place", ["pipe", "/dev/zero"])
async def test_an_endless_configuration_is_unresolved_and_blocks_nothing(
    place: str, repository: Path
) -> None:
    os.mkfifo(repository / "pipe")
    git(repository, "remote", "add", "origin", "https://github.com/o/r")
    with (repository / ".git" / "config").open("a") as config:
        config.write(f"[include]\n\tpath = {repository / place}\n")
    asked = asyncio.ensure_future(hosts(repository, "origin", Resolver(timeout_seconds=0.3)))
    turns = 0
    while not asked.done():
        await asyncio.sleep(0)
        turns += 1
    assert await asked == [""]
    assert turns > 100 or place != "pipe", "others went on meanwhile"
    assert await hosts(repository, "https://github.com/o/r", Resolver(timeout_seconds=0.01)) == [""]


@needs_git
async def test_a_repository_where_git_hangs_blocks_no_other(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "remote", "add", "origin", "https://github.com/o/r")
    os.mkfifo(repository / "pipe")
    with (repository / ".git" / "config").open("a") as config:
        config.write(f"[include]\n\tpath = {repository / 'pipe'}\n")
    resolver = Resolver(timeout_seconds=30)
    hanging = asyncio.ensure_future(hosts(repository, "origin", resolver))
    assert await hosts(other, "origin", resolver) == ["github.com"]
    assert not hanging.done()
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)


@needs_git
async def test_an_oversized_configuration_is_unresolved(repository: Path) -> None:
    remotes = "".join(f'[remote "r{n}"]\n\turl = https://github.com/o/{n}\n' for n in range(MAX_REMOTES + 1))
    (repository / ".git" / "config").write_text(remotes)
    assert await hosts(repository, "r1") == ["github.com"]
    assert await hosts(repository) == [""]
    (repository / ".git" / "config").write_text(remotes * (2 * MAX_BYTES // len(remotes)))
    assert await hosts(repository, "r1") == [""]


def test_w4_a_remote_that_is_left_out_is_a_target_with_a_problem() -> None:
    targets = targets_of(PUSH, {"path": "."}, LexicalPaths())
    assert [target.problem for target in targets if isinstance(target, UrlTarget)] == [
        "names no remote, so git chooses one"
    ]


async def test_an_unresolved_remote_name_has_a_problem(tmp_path: Path) -> None:
    paths = LexicalPaths(str(tmp_path))
    targets = targets_of(PUSH, {"remote": "origin"}, paths)
    assert [target.problem is not None for target in targets if isinstance(target, UrlTarget)] == [True]
    assert await hosts(tmp_path, "origin", Resolver(git="git-that-is-not-there")) == [""]


@pytest.mark.parametrize(
    "remote",
    [
        "ext::sh -c 'touch x'",
        "fd::7",
        "--upload-pack=touch x",
        "-o",
        "../local",
        "/srv/repo.git",
        "file:///srv/repo.git",
        "origin",
        "",
        "http://exa mple.com/r",
        "host\\x:repo",
        "[x@github.com:22]@evil.example:o/r",
        "[git@github.com:22]:o/r",
        "git@[github.com]:o/r",
    ],
)
def test_a_remote_that_is_not_on_a_network_has_a_problem(remote: str) -> None:
    assert canonical_remote(remote).problem is not None


@pytest.mark.parametrize(
    ("remote", "host", "path"),
    [
        ("https://github.com/o/r.git", "github.com", "/o/r"),
        ("git@github.com:o/r.git", "github.com", "/o/r"),
        ("github.com:o/r", "github.com", "/o/r"),
        ("ssh://git@github.com:22/o/r", "github.com", "/o/r"),
        ("git://GitHub.com/o/../p/r/", "github.com", "/p/r"),
        ("git@[2001:4860:4860::8888]:o/r", "2001:4860:4860::8888", "/o/r"),
        ("git@0x7f.1:o/r", "127.0.0.1", "/o/r"),
    ],
)
def test_a_remote_is_host_and_path(remote: str, host: str, path: str) -> None:
    target = canonical_remote(remote)
    assert (target.problem, target.host, target.path) == (None, host, path)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_as_a_remote_has_an_answer(text: str) -> None:
    target = canonical_remote(text)
    assert (target.problem is None) == bool(target.host)
