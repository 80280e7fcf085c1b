"""An agent commits in its sandbox, offers the commits, the person accepts them, and the agent pushes the branch."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.commands.git.repositories import git, make_repository
from tests.commands.git.test_push import SSH

from holdfast.app import Runtime
from holdfast.commands import probe_sandbox
from holdfast.core.errors import CommandError
from holdfast.core.events import CallIntended, CallRefused, CallSettled, EscalationOpened
from holdfast.models import ScriptedModel, ScriptedReply, use
from holdfast.session import Session, Settings

POLICY = """\
policy: commits
rules:
  - {name: commands, allow: ["shell.*", git.propose]}
  - {name: read, allow: "*", roles: [read-path], inside: true}
  - {name: propose, stage: "world.*", roles: [write-path, delete-path], inside: true}
  - {name: push, allow: git.push, hosts: [git.example.com]}
  - {name: any-branch, allow: git.push, roles: [branch-name]}
"""
ASKING = POLICY.replace("push, allow: git.push, hosts: [git.example.com]", "push, escalate: git.push")
COMMIT = "echo two > a.txt && git -c user.name=Ann -c user.email=ann@example.com commit -qam second"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    if asyncio.run(probe_sandbox(tmp_path / "cache")).tier != "full":
        pytest.skip("the full sandbox does not stand here")
    return make_repository(tmp_path / "project")


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", settings=Settings(acts_with="tools"), servers=())
    yield started
    await started.close()


async def open_session(
    runtime: Runtime, project: Path, *replies: ScriptedReply, policy: str = POLICY
) -> Session:
    file = project.parent / "commits.yaml"
    file.write_text(policy)
    return await runtime.create(model=ScriptedModel(replies), workspace=project, policy=str(file))


def settled(session: Session, operation: str) -> list[CallSettled]:
    """The calls of an operation that were settled, in order."""
    intended = {
        entry.event.call.id: entry.event.call.operation
        for entry in session._journal.recorded
        if isinstance(entry.event, CallIntended)
    }
    found = [entry.event for entry in session._journal.recorded if isinstance(entry.event, CallSettled)]
    return [each for each in found if intended.get(each.call) == operation]


def person_with_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person whose ssh runs the other side here and notes the host; the note is returned."""
    ssh, home, log = folder / "ssh.sh", folder / "person", folder / "log"
    ssh.write_text(SSH.replace("$LOG", str(log)))
    ssh.chmod(0o755)
    home.mkdir()
    log.touch()
    (home / ".gitconfig").write_text(f"[core]\n\tsshCommand = {ssh}\n")
    monkeypatch.setenv("HOME", str(home))
    return log


async def test_commits_are_offered_accepted_and_pushed(
    runtime: Runtime, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = person_with_ssh(tmp_path, monkeypatch)
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    git(project, "remote", "add", "origin", f"ssh://git.example.com{remote}")
    session = await open_session(
        runtime,
        project,
        use("shell__run", {"script": COMMIT}),
        use("git__propose", {}),
        "Offered.",
        use("shell__run", {"script": COMMIT.replace("-qam second", "-q --amend -am rewritten")}),
        use("git__propose", {"source": "missing"}),
        use("git__propose", {}),
        "Changed.",
        use("git__push", {"url": "origin", "branch": "main"}),
        use("git__push", {"url": "ssh://evil.example/x", "branch": "main"}),
        "Pushed.",
    )
    await session.send("change a.txt and commit it")
    (offered,) = session.offered_commits()
    assert (offered.repository, offered.paths) == (".", ("a.txt",))
    branch = f"holdfast/{session.id}"
    assert git(project, "for-each-ref", "refs/heads/holdfast") == ""
    assert await session.accept_commits(heads=["0" * 40]) == ()
    (first,) = await session.accept_commits(heads=[offered.head])
    assert git(project, "log", "--format=%s", branch) == "second\nfirst"
    assert session.offered_commits() == ()

    await session.send("amend it")
    assert [each.status for each in settled(session, "git.propose")] == ["ok", "error", "ok"]
    (second,) = await session.accept_commits()
    assert second.before == first.after

    git(project, "merge", "-q", branch)
    await session.send("push it")
    assert [each.status for each in settled(session, "git.push")] == ["ok"]
    assert git(remote, "rev-parse", "main") == second.after
    assert log.read_text() == "git.example.com\n"


@pytest.mark.promise("P12")
async def test_offered_commits_name_first_what_runs_later_and_are_accepted_as_shown(
    runtime: Runtime, project: Path
) -> None:
    many = "for i in $(seq 120); do echo $i > file$i.txt; done; echo all: > sub.mk; git add -A"
    session = await open_session(
        runtime, project, use("shell__run", {"script": f"{many}; {COMMIT}"}), use("git__propose", {}), "Done."
    )
    await session.send("commit a lot")
    (offered,) = session.offered_commits()
    assert offered.paths[0] == "sub.mk"
    assert len(offered.paths) + offered.more_paths == 122
    assert session._commands is not None
    assert session._commands.git is not None
    for forged in ({"ref": "refs/heads/main"}, {"head": "0" * 40}, {"proposal": offered.bundle}):
        with pytest.raises(CommandError):
            await session._commands.git.accept(msgspec.structs.replace(offered, **forged))
    assert git(project, "for-each-ref", "refs/heads/holdfast") == ""


async def test_a_push_goes_where_the_policy_judged_it_to_go(
    runtime: Runtime, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repository rewrites an address that looks foreign to the allowed one: the push goes to the allowed one."""
    log = person_with_ssh(tmp_path, monkeypatch)
    git(project, "config", "url.ssh://git.example.com/.insteadOf", "ssh://evil.example/")
    push = use("git__push", {"url": f"ssh://evil.example{tmp_path}/remote.git", "branch": "main"})
    session = await open_session(runtime, project, push, "Pushed.")
    await session.send("push it")
    assert log.read_text() == "git.example.com\n"


async def test_a_push_from_a_folder_is_judged_by_the_remotes_of_the_repository_there(
    runtime: Runtime, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`origin` of the project is allowed; the folder has an `origin` of its own, which is not."""
    log = person_with_ssh(tmp_path, monkeypatch)
    git(project, "remote", "add", "origin", f"ssh://git.example.com{tmp_path}/remote.git")
    inner = make_repository(project / "inner")
    git(inner, "remote", "add", "origin", f"ssh://evil.example{tmp_path}/remote.git")
    rewritten = f"ssh://git.example.com{tmp_path}/other.git"
    git(project, "config", "url.ssh://evil.example/.insteadOf", rewritten)
    calls = [
        ("origin", "inner"),
        ("origin", "inner/../inner"),
        (rewritten, ""),
        ("origin", "."),
        ("origin", "../project"),
    ]
    pushes = [use("git__push", {"url": url, "branch": "main", "folder": folder}) for url, folder in calls]
    session = await open_session(runtime, project, *pushes, "Pushed.")
    await session.send("push all")
    assert set(log.read_text().split()) == {"git.example.com"}


async def test_nobody_is_asked_about_a_push_that_cannot_work(
    runtime: Runtime, project: Path, tmp_path: Path
) -> None:
    """Git pushes over the network only; a fetch from a folder of this machine does not matter to a push."""
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(project, "remote", "add", "local", str(tmp_path / "remote.git"))
    git(project, "remote", "add", "both", str(tmp_path / "remote.git"))
    git(project, "remote", "set-url", "--push", "both", "ssh://git.example.com/x")
    impossible = [
        *(
            (url, "main")
            for url in ("local", "../remote.git", f"file://{tmp_path}/remote.git", "git://git.example.com/x")
        ),
        ("ext::sh -c true", "main"),
        ("ssh://git.example.com/x", "missing"),
        ("ssh://git.example.com/x", "../x"),
    ]
    replies = [use("git__push", {"url": url, "branch": branch}) for url, branch in impossible]
    session = await open_session(
        runtime, project, *replies, use("git__push", {"url": "both", "branch": "main"}), policy=ASKING
    )
    await session.send("push it")
    refused = [entry.event for entry in session._journal.recorded if isinstance(entry.event, CallRefused)]
    assert ["can never" in each.decision.reason for each in refused[:5]] == [True] * 5, refused
    assert "there is no branch 'missing'" in refused[5].decision.reason
    assert "not the name of a branch" in refused[6].decision.reason
    assert len(refused) == len(impossible)
    (asked,) = (
        entry.event for entry in session._journal.recorded if isinstance(entry.event, EscalationOpened)
    )
    assert asked.escalation.call.arguments["url"] == "both"
