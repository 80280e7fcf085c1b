"""The loop that commands are for: stage an edit, run the tests, fix by a program, run them again, commit a part, rewind."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest

from holdfast.app import Runtime
from holdfast.commands import ShellSettings, probe_sandbox
from holdfast.core import Escalation, Json, JsonObject, Ok, Outcome, Proposed, Response
from holdfast.core.events import CallSettled, HostJudged
from holdfast.gate import WebAddress, published_address
from holdfast.models import ScriptedModel, ScriptedReply, use
from holdfast.session import Session, Settings

POLICY = """\
policy: loop
rules:
  - {name: commands, allow: "shell.*"}
  - {name: read, allow: "*", roles: [read-path], inside: true}
  - {name: propose, stage: "world.*", roles: [write-path, delete-path], inside: true}
"""
FILES = {
    "shop.py": "def total(prices):\n    return sum(prices)\n",
    "test_shop.py": "import unittest\nfrom shop import total\n\n\n"
    "class Shop(unittest.TestCase):\n    def test_tax(self):\n        self.assertEqual(total([10], tax=2), 12)\n",
    "notes.txt": "nothing yet\n",
    ".gitignore": "__pycache__/\n",
}
EDIT = "def total(prices, tax=0):\n    return sum(prices)\n"
TESTS = ["python3", "-m", "unittest", "-q"]
FIX = ["sed", "-i", "s/sum(prices)/sum(prices) + tax/", "shop.py"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "gitconfig").write_text("[user]\nname = a\nemail = a@example.com\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    if asyncio.run(probe_sandbox(tmp_path / "cache")).tier != "full":
        pytest.skip("the full sandbox does not stand here")
    folder = tmp_path / "project"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_text(content)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    (tmp_path / "loop.yaml").write_text(POLICY)
    return folder


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", settings=Settings(acts_with="tools"), servers=())
    yield started
    await started.close()


async def open_session(runtime: Runtime, project: Path, *replies: ScriptedReply) -> Session:
    policy = str(project.parent / "loop.yaml")
    return await runtime.create(model=ScriptedModel(replies), workspace=project, policy=policy)


def run(*argv: str) -> ScriptedReply:
    return use("shell__run", {"argv": list(argv)})


def results(session: Session) -> list[JsonObject]:
    settled = [entry.event for entry in session._journal.recorded if isinstance(entry.event, CallSettled)]
    assert [each.error for each in settled if each.status != "ok"] == []
    return [each.result for each in settled if isinstance(each.result, dict)]


async def test_edit_test_fix_commit_a_part_and_rewind(runtime: Runtime, project: Path) -> None:
    session = await open_session(
        runtime,
        project,
        use("world__write", {"path": "shop.py", "content": EDIT}),
        run(*TESTS),
        run(*FIX),
        use("shell__run", {"script": "echo taxed > notes.txt"}),
        run(*TESTS),
        "The tests pass.",
        run("cat", "shop.py"),
        run("git", "status", "--short"),
        "Looked.",
    )
    outcome = await session.send("add tax")
    assert isinstance(outcome, Proposed)
    failed, fixed, _, passed = results(session)
    assert failed["code"] == 1
    assert "AssertionError" in str(failed["output"])
    assert fixed["changes"] == [{"path": "shop.py", "kind": "modified", "verdict": "staged"}]
    assert passed["code"] == 0

    proposals = {each.path: each.diff for each in session.proposals()}
    assert sorted(proposals) == ["notes.txt", "shop.py"]
    assert "+def total(prices, tax=0):" in proposals["shop.py"]
    assert "+    return sum(prices) + tax" in proposals["shop.py"]
    assert (project / "shop.py").read_text() == FILES["shop.py"]

    await session.commit("shop.py")
    assert "sum(prices) + tax" in (project / "shop.py").read_text()
    assert (project / "notes.txt").read_text() == "nothing yet\n"
    (project / "shop.py").write_text((project / "shop.py").read_text() + "# the person's line\n")
    await session.send("look")
    looked, status = results(session)[-2:]
    assert "sum(prices) + tax" in str(looked["output"])
    assert "# the person's line" in str(looked["output"])
    assert status["output"] == " M notes.txt\n M shop.py\n"

    assert (await session.rewind(0)).stays == (), "a program without a network acts only in the sandbox"
    assert {path.name: path.read_text() for path in project.glob("*") if path.is_file()} == FILES
    assert session.proposals() == ()
    assert not list(project.rglob("__pycache__"))


async def outcome_of(session: Session, code: str, language: str) -> Json:
    outcome: Outcome = await session.execute(code, language=language)
    assert isinstance(outcome, Ok | Proposed), outcome
    return outcome.value


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", 'shell.run(["sed", "-n", "1p", "shop.py"])["output"]'),
        ("lisp", '(get (shell/run :argv (list "sed" "-n" "1p" "shop.py")) "output")'),
    ],
)
async def test_code_of_every_language_runs_programs(
    runtime: Runtime, project: Path, language: str, code: str
) -> None:
    session = await open_session(runtime, project)
    assert await outcome_of(session, code, language) == "def total(prices):\n"


async def test_a_person_runs_a_command_and_gets_its_output_while_it_runs(
    runtime: Runtime, project: Path
) -> None:
    session = await open_session(runtime, project)
    shown: list[str] = []
    session.on_output = shown.append
    value = await outcome_of(session, "echo one; echo two > made.txt; exit 3", "shell")
    assert "".join(shown) == "one\n"
    assert isinstance(value, dict)
    assert value["code"] == 3
    assert [each.path for each in session.proposals()] == ["made.txt"]


async def test_git_works_inside_and_touches_nothing_outside(runtime: Runtime, project: Path) -> None:
    before = sorted(path for path in (project / ".git").rglob("*"))
    script = "echo x > new.txt && git add -A && git commit -qm inside && git log --oneline | wc -l"
    session = await open_session(runtime, project)
    value = await outcome_of(session, script, "shell")
    assert isinstance(value, dict)
    assert (value["code"], value["output"]) == (0, "2\n")
    assert [each.path for each in session.proposals()] == ["new.txt"]
    assert sorted(path for path in (project / ".git").rglob("*")) == before


async def test_a_secret_of_the_workspace_cannot_be_read(runtime: Runtime, project: Path) -> None:
    (project / ".env").write_text("KEY=canary\n")
    session = await open_session(runtime, project)
    value = await outcome_of(session, "cat .env; ls -a; env", "shell")
    assert isinstance(value, dict)
    assert "canary" not in str(value["output"])
    assert "HOLDFAST_HOME" not in str(value["output"])


ASKING = POLICY + "  - {name: hosts, escalate: net.connect}\n"
FETCH = (
    "import urllib.request, urllib.error\n"
    "try:\n    urllib.request.urlopen('http://example.com/', timeout=30)\n"
    "except urllib.error.HTTPError as error:\n    print(error.code)\n"
)


@pytest.mark.parametrize(("verdict", "allowed"), [("approve", True), ("deny", False)])
async def test_a_host_is_asked_about_while_the_program_waits(
    runtime: Runtime, project: Path, verdict: Literal["approve", "deny"], allowed: bool
) -> None:
    (project.parent / "loop.yaml").write_text(ASKING)
    session = await open_session(runtime, project)
    asked: list[Escalation] = []

    async def approver(escalation: Escalation) -> Response:
        asked.append(escalation)
        assert session.status.has_open_turn
        return Response(verdict=verdict)

    session.approver = approver
    (project.parent / "project" / "fetch.py").write_text(FETCH)
    value = await outcome_of(session, "python3 fetch.py", "shell")
    assert isinstance(value, dict)
    assert [each.call.operation for each in asked] == ["net.connect"]
    judged = [entry.event for entry in session._journal.recorded if isinstance(entry.event, HostJudged)]
    assert [(each.host, each.port, each.verdict) for each in judged] == [
        ("example.com", 80, "allow" if allowed else "deny")
    ]
    stays = (await session.plan_rewind(0)).stays
    assert bool(stays) is allowed, "what a program did in the network cannot be undone"
    if not allowed:
        assert value["output"] == "403\n"
        assert value["hosts"] == [
            {"host": "example.com", "verdict": "refused: example.com: the person denied it"}
        ]


async def test_without_a_rule_for_hosts_there_is_no_network(runtime: Runtime, project: Path) -> None:
    session = await open_session(runtime, project)
    script = "python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), timeout=5)\""
    value = await outcome_of(session, script, "shell")
    assert isinstance(value, dict)
    assert value["code"] == 1
    assert "unreachable" in str(value["output"])


async def test_a_server_in_the_background_is_opened_to_the_persons_browser(
    runtime: Runtime, project: Path
) -> None:
    start: JsonObject = {"argv": ["python3", "-m", "http.server", "8000"], "ready": {"port": 8000}}
    session = await open_session(runtime, project, use("shell__start", start), "Started.")
    await session.send("start a server")
    (started,) = results(session)
    assert started["is_ready"], started
    port = await session.preview(8000)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /notes.txt HTTP/1.0\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    assert answer.endswith(b"nothing yet\n")
    assert [each.ports for each in session.processes()] == [(8000,)]


async def test_a_commit_made_inside_is_offered_and_accepted_as_one_branch(
    runtime: Runtime, project: Path
) -> None:
    (project.parent / "loop.yaml").write_text(POLICY + '  - {name: git, allow: "git.*"}\n')
    script = "echo taxed > notes.txt && git add -A && git commit -qm 'Add tax'"
    session = await open_session(
        runtime, project, use("shell__run", {"script": script}), use("git__propose", {}), "Offered."
    )
    await session.send("commit it")
    (offered,) = session.offered_commits()
    assert [each.partition(" ")[2] for each in offered.commits] == ["Add tax"]
    config = (project / ".git" / "config").read_bytes()
    (accepted,) = await session.accept_commits()
    shown = await asyncio.to_thread(
        subprocess.check_output, ["git", "show", f"{accepted.ref}:notes.txt"], cwd=project
    )
    assert shown == b"taxed\n"
    assert (project / ".git" / "config").read_bytes() == config
    assert session.offered_commits() == ()
    assert (project / "notes.txt").read_text() == "nothing yet\n"


CONNECT = "import socket, sys; print(socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5).recv(9))"


async def test_programs_reach_the_ports_of_this_machine_that_the_settings_name_and_never_our_own(
    tmp_path: Path, project: Path
) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    servers = [await asyncio.start_server(greet, "127.0.0.1", 0) for _ in range(3)]
    named, other, own = (server.sockets[0].getsockname()[1] for server in servers)
    settings = Settings(acts_with="tools", shell=ShellSettings(ports=(named, own)))
    runtime = await Runtime.start(home=tmp_path / "ports", settings=settings, servers=())
    connect = [run("python3", "-c", CONNECT, str(port)) for port in (named, other, own)]
    session = await open_session(runtime, project, *connect, "Done.")
    page = WebAddress(origin=f"http://127.0.0.1:{own}", since_ms=1, port=own)
    with published_address(runtime.home, page):
        await session.send("connect")
    reached, refused, closed = results(session)
    assert closed["output"] == "b''\n", "where our own page listens, nothing is forwarded"
    assert (reached["code"], reached["output"]) == (0, "b'hello'\n")
    assert refused["code"] == 1
    assert "ConnectionRefusedError" in str(refused["output"])
    await runtime.close()
    for server in servers:
        server.close()
        await server.wait_closed()
