"""F14: approvals of commands by their first words, and of hosts, given in a session and used by its next calls."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.commands import (
    SandboxStatus,
    ScriptedProcess,
    ScriptedSandboxes,
    ShellSettings,
    probe_sandbox,
)
from holdfast.core import Escalation, Json, Response, Scope, describe_coverage
from holdfast.core.approval_text import describe_offers
from holdfast.core.events import CallSettled, HostJudged
from holdfast.models import ScriptedModel, ScriptedReply, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.testing import memory_session

TOOLS = Settings(acts_with="tools")
ASKING = FixedPolicy(default="allow", verdicts={"shell.run": "escalate"})


async def _git(process: ScriptedProcess) -> int:
    process.print(" ".join(process.argv))
    return 0


PROGRAMS = dict.fromkeys(("git", "sh", "head"), _git)


def run(**arguments: Json) -> ScriptedReply:
    return use("shell__run", arguments)


async def is_asked(session: Session) -> Escalation | None:
    """Send a message, and return the question that it leads to."""
    await session.send("go")
    return next(iter(session.escalations()), None)


async def approve(session: Session, asked: Escalation, *, offer: int) -> None:
    await session.resolve(asked.id, Response(verdict="approve", scope="session", offer=offer))
    await session.advance()


def offers(asked: Escalation) -> list[str]:
    return [describe_coverage(each.coverage) for each in asked.offers]


async def test_f14_a_command_is_offered_by_its_first_words() -> None:
    async with memory_session(
        [run(argv=["git", "log", "-3"], cwd="."), "Done."], policy=ASKING, programs=PROGRAMS, settings=TOOLS
    ) as session:
        asked = await is_asked(session)
        assert asked is not None
        settings = "with any cwd, any timeout_s, any tty"
        assert offers(asked) == [
            'shell.run on argv git log -3 (command) with cwd="."',
            f"shell.run on commands that begin with `git log`, without redirections into files (command) {settings}",
            f"shell.run on commands that begin with `git`, without redirections into files (command) {settings}",
        ]


@pytest.mark.parametrize(
    ("following", "is_covered"),
    [
        ({"argv": ["git", "log", "--stat"], "cwd": ".", "timeout_s": 9}, True),
        ({"script": "git log -1 && git log -2"}, True),
        ({"argv": ["git", "push"]}, False),
        ({"argv": ["git", "logs"]}, False),
        ({"script": "git log -1; git push"}, False),
        ({"script": "git log > notes.txt"}, False),
        ({"script": "git log $(git push)"}, False),
        ({"script": "eval git log"}, False),
        ({"argv": ["sh", "-c", "git log"]}, True),
        ({"argv": ["git", "log"], "env": {"GIT_PAGER": "sh"}}, False),
        ({"argv": ["git", "log"], "hosts": ["example.com"]}, False),
        ({"argv": ["git", "log"], "stdin": "x"}, False),
    ],
)
async def test_f14_an_approval_by_first_words_covers_these_commands_and_no_others(
    following: dict[str, Json], is_covered: bool
) -> None:
    replies = [run(argv=["git", "log", "-3"]), "Done.", run(**following), "Done."]
    async with memory_session(replies, policy=ASKING, programs=PROGRAMS, settings=TOOLS) as session:
        asked = await is_asked(session)
        assert asked is not None
        await approve(session, asked, offer=2)
        assert (await is_asked(session) is None) == is_covered


async def test_f14_no_approval_of_a_program_that_runs_others_leaves_its_input_open() -> None:
    replies = [run(argv=["sh"], stdin="git log"), "Done.", run(argv=["sh"], stdin="git push"), "Done."]
    async with memory_session(replies, policy=ASKING, programs=PROGRAMS, settings=TOOLS) as session:
        asked = await is_asked(session)
        assert asked is not None
        await approve(session, asked, offer=len(asked.offers))
        assert await is_asked(session) is not None


async def test_f14_a_script_that_is_not_understood_is_offered_alone() -> None:
    replies = [run(script="eval $X"), "Done.", run(script="eval X"), "Done."]
    async with memory_session(replies, policy=ASKING, programs=PROGRAMS, settings=TOOLS) as session:
        asked = await is_asked(session)
        assert asked is not None
        assert all("exactly this script" in each for each in offers(asked))
        await approve(session, asked, offer=len(asked.offers))
        assert await is_asked(session) is not None


async def test_f14_a_weaker_sandbox_is_asked_about_once_a_session(tmp_path: Path) -> None:
    (tmp_path / "ask.yaml").write_text(
        "policy: ask\nrules:\n"
        '  - {name: publish, escalate: "shell.*", commands: [[git, push]]}\n'
        '  - {name: weaker, escalate: "shell.*"}\n'
    )
    runtime = await Runtime.start(
        home=tmp_path / "home",
        settings=Settings(acts_with="tools", shell=ShellSettings(enabled=True)),
        servers=(),
        sandboxes=ScriptedSandboxes(PROGRAMS, status=SandboxStatus(tier="copy")),
    )
    replies = [
        run(argv=["git", "log"]),
        run(script="eval $X; sh", stdin="x", env={"A": "b"}),
        use("shell__start", {"argv": ["head"]}),
        run(argv=["git", "push"]),
        "Done.",
    ]
    session = await runtime.create(model=ScriptedModel(replies), policy=str(tmp_path / "ask.yaml"))
    asked = await is_asked(session)
    assert asked is not None
    assert offers(asked)[-1] == "all calls of shell that rule weaker asks about"
    await approve(session, asked, offer=len(asked.offers))
    (asked,) = session.escalations()
    assert asked.call.arguments == {"argv": ["git", "push"]}
    await runtime.close()


HOSTS = """\
policy: hosts
rules:
  - {name: commands, allow: "shell.*"}
  - {name: read, allow: "*", roles: [read-path], inside: true}
  - {name: hosts, escalate: net.connect}
"""
FETCH = """\
import sys, urllib.request, urllib.error
for url in sys.argv[1:]:
    try:
        urllib.request.urlopen(url, timeout=30)
    except OSError as error:
        print(getattr(error, "code", error))
"""


@pytest.fixture
async def hosts_session(tmp_path: Path) -> AsyncIterator[Session]:
    if (await probe_sandbox(tmp_path / "cache")).tier != "full":
        pytest.skip("the full sandbox does not stand here")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "fetch.py").write_text(FETCH)
    (tmp_path / "hosts.yaml").write_text(HOSTS)
    runtime = await Runtime.start(home=tmp_path / "home", settings=TOOLS, servers=())
    one, other = "http://a.invalid/", "https://a.invalid/"
    replies = [
        run(argv=["python3", "fetch.py", one, one, one]),
        run(argv=["python3", "fetch.py", one]),
        run(argv=["python3", "fetch.py", other]),
        "Done.",
        run(argv=["python3", "fetch.py", one]),
        "Done.",
    ]
    policy = str(tmp_path / "hosts.yaml")
    yield await runtime.create(model=ScriptedModel(replies), workspace=tmp_path / "project", policy=policy)
    await runtime.close()


async def test_f14_a_host_approved_once_is_approved_for_the_whole_command_and_not_for_the_next(
    hosts_session: Session,
) -> None:
    asked = await hosts_asked_about(hosts_session, "once", offer=None)
    assert asked == ["1.1 a.invalid 80", "1.2 a.invalid 80", "1.3 a.invalid 443", "2.1 a.invalid 80"]


@pytest.mark.parametrize(
    ("scope", "offer", "asked"),
    [
        ("session", 1, ["1.1 a.invalid 80", "1.3 a.invalid 443"]),
        ("session", 2, ["1.1 a.invalid 80"]),
        ("turn", 2, ["1.1 a.invalid 80", "2.1 a.invalid 80"]),
        ("times", 2, ["1.1 a.invalid 80", "1.3 a.invalid 443"]),
    ],
)
async def test_f14_a_host_is_approved_at_one_port_or_at_any_for_a_length_of_time(
    hosts_session: Session, scope: Scope, offer: int, asked: list[str]
) -> None:
    assert await hosts_asked_about(hosts_session, scope, offer=offer) == asked


async def hosts_asked_about(session: Session, scope: Scope, *, offer: int | None) -> list[str]:
    """Run three commands in one turn and one in the next; returns the questions. The first command connects three times."""
    asked: list[str] = []

    async def approver(escalation: Escalation) -> Response:
        call = escalation.call
        asked.append(f"{call.id.rpartition('.')[0]} {call.arguments['host']} {call.arguments['port']}")
        assert offers(escalation)[-1] == (
            "net.connect on host everything at a.invalid (proxy-domain) with any arguments"
        )
        return Response(verdict="approve", scope=scope, offer=offer, amount=2 if scope == "times" else None)

    session.approver = approver
    for _ in range(2):
        await session.send("fetch")
    recorded = [entry.event for entry in session._journal.recorded]
    assert [each.error for each in recorded if isinstance(each, CallSettled) and each.error] == []
    judged = [each for each in recorded if isinstance(each, HostJudged)]
    assert [each.verdict for each in judged] == ["allow"] * 6
    return asked


async def test_f14_the_offer_of_a_host_says_how_many_of_the_last_connections_it_would_have_covered(
    hosts_session: Session,
) -> None:
    words: list[list[str]] = []

    async def approver(escalation: Escalation) -> Response:
        words.append([each.rpartition(" (")[2] for each in describe_offers(escalation)])
        return Response(verdict="approve")

    hosts_session.approver = approver
    await hosts_session.send("fetch")
    # The first command connects three times to port 80, the second once; the third to port 443.
    assert words == [
        ["proxy-domain) with port=80", "proxy-domain) with any arguments"],
        ["would have covered 3 of the last 3 connections)"] * 2,
        [
            "would have covered 0 of the last 4 connections)",
            "would have covered 4 of the last 4 connections)",
        ],
    ]


async def test_f14_a_connection_that_the_person_edits_is_refused(hosts_session: Session) -> None:
    async def approver(escalation: Escalation) -> Response:
        return Response(verdict="approve", arguments={"host": "b.invalid", "port": 80})

    hosts_session.approver = approver
    await hosts_session.send("fetch")
    judged = [entry.event for entry in hosts_session._journal.recorded if isinstance(entry.event, HostJudged)]
    assert {(each.host, each.verdict) for each in judged} == {("a.invalid", "deny")}
