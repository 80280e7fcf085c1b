"""Git remotes: resolved as git resolves them, and git itself is asked whether that is so."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core import ArgumentRoles, Tool, UrlTarget
from holdfast.policy import LexicalPaths, targets_of
from holdfast.policy.git_remotes import GitConfig, GitRemotes, canonical_remote

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
    config = GitConfig.parse(git(repository, "config", "--list", "-z"))
    assert (
        list(config.push_urls("origin"))
        == git(repository, "remote", "get-url", "--push", "--all", "origin").split()
    )
    assert (
        list(config.fetch_urls("origin")) == git(repository, "remote", "get-url", "--all", "origin").split()
    )


@needs_git
def test_w4_a_hidden_push_url_is_among_the_targets(repository: Path) -> None:
    git(repository, "remote", "add", "origin", "https://github.com/o/r")
    git(repository, "config", "remote.origin.pushurl", "git@evil.example:o/r")
    paths = LexicalPaths(str(repository))
    targets = targets_of(PUSH, {"path": ".", "remote": "origin"}, paths, remotes=GitRemotes())
    hosts = [target.host for target in targets if isinstance(target, UrlTarget)]
    assert hosts == ["evil.example", "github.com"]


@needs_git
def test_w4_a_url_that_is_rewritten_is_judged_by_where_it_leads(repository: Path) -> None:
    git(repository, "config", "url.https://evil.example/.insteadOf", "https://github.com/")
    targets = targets_of(
        PUSH,
        {"path": ".", "remote": "https://github.com/o/r"},
        LexicalPaths(str(repository)),
        remotes=GitRemotes(),
    )
    assert [target.host for target in targets if isinstance(target, UrlTarget)] == ["evil.example"]


@needs_git
def test_w4_without_a_remote_every_remote_is_a_target(repository: Path) -> None:
    git(repository, "remote", "add", "origin", "https://github.com/o/r")
    git(repository, "remote", "add", "other", "https://evil.example/o/r")
    targets = targets_of(PUSH, {"path": "."}, LexicalPaths(str(repository)), remotes=GitRemotes())
    hosts = [target.host for target in targets if isinstance(target, UrlTarget)]
    assert hosts == ["github.com", "evil.example"]


def test_w4_a_remote_that_is_left_out_is_a_target_with_a_problem() -> None:
    targets = targets_of(PUSH, {"path": "."}, LexicalPaths())
    assert [target.problem for target in targets if isinstance(target, UrlTarget)] == [
        "names no remote, so that git chooses one"
    ]


def test_a_name_that_nobody_resolves_has_a_problem(tmp_path: Path) -> None:
    for remotes in (None, GitRemotes(git="git-that-is-not-there")):
        targets = targets_of(PUSH, {"remote": "origin"}, LexicalPaths(str(tmp_path)), remotes=remotes)
        assert [target.problem is not None for target in targets if isinstance(target, UrlTarget)] == [True]


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
    ],
)
def test_what_is_no_remote_over_a_network_has_a_problem(remote: str) -> None:
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
