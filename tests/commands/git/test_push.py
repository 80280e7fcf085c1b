"""A push reaches exactly the judged address, with the person's way to authenticate and nothing of the repository's."""

import os
from pathlib import Path

import pytest
from tests.commands.git.repositories import commit_file, git, make_repository, snapshot

from holdfast.commands.git import HostGit, PushedBranch, check_address, push_branch
from holdfast.core.errors import CommandError

SSH = """#!/bin/sh
# The person's ssh: the last argument is the command for the other side; the one before it is the host.
test "$1" = -G && exit 0  # git asks which ssh this is
for last; do before="$previous"; previous="$last"; done
echo "$before" >> "$LOG"
exec sh -c "$last"
"""
UNREACHED = (
    "ext::sh -c touch% /tmp/x",
    "file:///tmp/x",
    "/tmp/x",
    "git://127.0.0.1/x",
    "-u./x",
    "--receive-pack=x",
    "fd::3",
)


class Person:
    """A person with a home, an ssh program and a bare repository behind a host."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.log = folder / "log"
        self.log.touch()
        self.ssh = self.home / "ssh.sh"
        self.ssh.write_text(SSH.replace("$LOG", str(self.log)))
        self.ssh.chmod(0o755)
        self.configure(
            f'[user]\n\tname = Ann\n\temail = ann@example.com\n[core]\n\tsshCommand = "{self.ssh}"\n'
        )
        self.project = make_repository(folder / "project")
        git(self.project, "branch", "holdfast/s1")
        self.remote = folder / "remote.git"
        git(folder, "init", "-q", "--bare", str(self.remote))
        self.url = f"ssh://git@example.com{self.remote}"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "SECRET": "x"}

    def configure(self, text: str) -> None:
        (self.home / ".gitconfig").write_text(text)

    def ran(self) -> bool:
        return (self.folder / "ran").exists()

    async def push(
        self, *urls: str, source: str = "holdfast/s1", branch: str = "topic"
    ) -> tuple[PushedBranch, ...]:
        return await push_branch(
            HostGit(), urls or (self.url,), workspace=self.project, scratch=self.scratch,
            environment=self.environment, source=source, branch=branch,
        )  # fmt: skip


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


async def test_a_branch_is_pushed_with_the_ssh_of_the_person(person: Person) -> None:
    before = snapshot(person.project)
    (pushed,) = await person.push()
    assert pushed == PushedBranch(
        url=person.url, branch="topic", commit=git(person.project, "rev-parse", "main"), is_pushed=True
    )
    assert (
        git(person.remote, "for-each-ref", "--format=%(refname) %(objectname)")
        == f"refs/heads/topic {pushed.commit}"
    )
    assert person.log.read_text() == "git@example.com\n"
    assert snapshot(person.project) == before
    assert list(person.scratch.iterdir()) == []


async def test_nothing_of_the_repository_is_run_or_obeyed(person: Person) -> None:
    mark = f"touch '{person.folder}/ran'; false"
    for key, value in (
        ("core.sshCommand", mark), ("core.hooksPath", str(person.project / ".git/hooks")), ("core.gitProxy", mark),
        ("core.fsmonitor", mark), ("core.askPass", mark), ("credential.helper", f"!{mark}"), ("remote.origin.receivepack", mark),
        ("url.ssh://evil.example/.insteadOf", "ssh://git@example.com/"), ("url.ssh://evil.example/.pushInsteadOf", "ssh://"),
        ("core.alternateRefsCommand", mark), ("remote.origin.url", "ssh://evil.example/x"), ("push.recurseSubmodules", "on-demand"),
    ):  # fmt: skip
        git(person.project, "config", key, value)
    hook = person.project / ".git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{mark}\n")
    hook.chmod(0o755)
    (pushed,) = await person.push()
    assert pushed.is_pushed
    assert person.log.read_text() == "git@example.com\n"
    assert not person.ran()


async def test_no_setting_of_the_person_sends_the_push_elsewhere(person: Person) -> None:
    text = (person.home / ".gitconfig").read_text()
    person.configure(
        f'{text}[url "ssh://evil.example/"]\n\tinsteadOf = ssh://git@example.com/\n\tpushInsteadOf = ssh://git@example.com/\n'
        f"[core]\n\thooksPath = {person.home}/hooks\n"
    )
    (person.home / "hooks").mkdir()
    (person.home / "hooks/pre-push").write_text(f"#!/bin/sh\ntouch '{person.folder}/ran'\n")
    (person.home / "hooks/pre-push").chmod(0o755)
    assert (await person.push())[0].is_pushed
    assert person.log.read_text() == "git@example.com\n"
    assert not person.ran()


async def test_a_conditional_include_of_the_person_counts(person: Person) -> None:
    person.configure(f'[includeIf "gitdir:{person.project}/"]\n\tpath = work.config\n')
    (person.home / "work.config").write_text(f'[core]\n\tsshCommand = "{person.ssh}"\n')
    assert (await person.push())[0].is_pushed


@pytest.mark.parametrize("url", UNREACHED)
async def test_other_kinds_of_addresses_are_refused_by_git_itself(person: Person, url: str) -> None:
    (pushed,) = await person.push(url)
    assert not pushed.is_pushed
    assert pushed.message
    assert person.log.read_text() == ""


async def test_a_push_only_moves_a_branch_forward(person: Person) -> None:
    await person.push()
    git(person.project, "switch", "-q", "holdfast/s1")
    commit_file(person.project, "b", "b", "more")
    assert (await person.push())[0].is_pushed
    git(person.project, "commit", "-q", "--amend", "-m", "rewritten")
    (refused,) = await person.push()
    assert not refused.is_pushed
    assert "non-fast-forward" in refused.message
    for source, branch in (
        ("+holdfast/s1", "topic"),
        ("", "topic"),
        ("holdfast/s1", ":topic"),
        ("holdfast/s1", "a..b"),
        ("-d", "x"),
    ):
        with pytest.raises(CommandError, match="not the name of a branch"):
            await person.push(source=source, branch=branch)
    with pytest.raises(CommandError, match="no branch"):
        await person.push(source="missing")


async def test_secrets_of_an_address_are_not_told(person: Person) -> None:
    person.configure("")
    (refused,) = await person.push("https://ann:token@127.0.0.1:9/x.git")
    assert refused.url == "https://127.0.0.1:9/x.git"
    assert not refused.is_pushed
    assert "token" not in refused.message


async def test_a_shallow_clone_and_a_linked_worktree_can_push(person: Person) -> None:
    commit_file(person.project, "b", "b", "second")
    shallow = person.folder / "shallow"
    git(person.folder, "clone", "-q", "--depth=1", f"file://{person.project}", str(shallow))
    git(shallow, "branch", "holdfast/s1")
    git(person.project, "push", "-q", str(person.remote), "main")
    person.project = shallow
    commit_file(shallow, "c", "c", "third")
    git(shallow, "branch", "-f", "holdfast/s1", "HEAD")
    assert (await person.push(branch="main"))[0].is_pushed
    side = person.folder / "side"
    git(shallow, "worktree", "add", "-q", str(side))
    person.project = side
    assert (await person.push(branch="other"))[0].is_pushed


@pytest.mark.parametrize(
    "url",
    ["https://example.com/x", "http://[::1]:8/x", "ssh://git@example.com/x", "git+ssh://example.com/x",
     "git@example.com:x.git", "host:x", "[::1]:x", "git@[::1]:x"],
)  # fmt: skip
def test_an_address_of_another_machine_can_be_pushed_to(url: str) -> None:
    check_address(url)


@pytest.mark.parametrize("url", UNREACHED)
def test_an_address_that_git_refuses_is_refused_before(url: str) -> None:
    with pytest.raises(CommandError, match="can never be pushed to"):
        check_address(url)
