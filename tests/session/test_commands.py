"""Programs in a session, with the scripted sandbox: what they change is judged, recorded, staged, committed and rewound."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pytest

from holdfast.app import Runtime
from holdfast.commands import Program, SandboxStatus, ScriptedProcess, ScriptedSandboxes, ShellSettings
from holdfast.core import (
    PERSON,
    Call,
    Change,
    Decision,
    Error,
    FileEffect,
    Json,
    JsonObject,
    JudgedEffect,
    Limits,
    Proposed,
    UserMessage,
    Verdict,
    call_id,
)
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallIntended,
    CallSettled,
    CodePosted,
    CommandEnded,
    CommandStarted,
    EffectsJudged,
    Event,
    ProcessEnded,
    SandboxClosed,
    SandboxOpened,
)
from holdfast.models import Prompt, Reply, ScriptedModel, ScriptedReply, say, use
from holdfast.policy import FixedPolicy, Policy
from holdfast.session import Session, Settings
from holdfast.testing import memory_session
from holdfast.world import MemoryWorld, Stat

TOOLS = Settings(acts_with="tools")


def policy(**verdicts: Verdict) -> FixedPolicy:
    named: dict[str, Verdict] = {name.replace("_", ".", 1): verdict for name, verdict in verdicts.items()}
    return FixedPolicy(default="allow", verdicts=named)


STAGING = policy(world_write="stage", world_delete="stage")


def world_of(**files: str) -> MemoryWorld:
    world = MemoryWorld()
    for name, content in files.items():
        world.write(name, content)
    return world


def run(*argv: str, **more: Json) -> ScriptedReply:
    return use("shell__run", {"argv": list(argv), **more})


def events(session: Session) -> list[Event]:
    return [entry.event for entry in session._journal.recorded]


def results(session: Session) -> list[JsonObject]:
    """The results of the calls so far."""
    found = []
    for event in events(session):
        if isinstance(event, CallSettled):
            assert event.status == "ok", event.error
            assert isinstance(event.result, dict)
            found.append(event.result)
    return found


async def test_what_a_program_changed_is_staged_and_the_next_program_sees_it() -> None:
    world = world_of(a="1", b="2")
    replies = [run("tee", "a", stdin="changed"), run("rm", "b"), run("cat", "a"), "Done."]
    async with memory_session(replies, world=world, policy=STAGING, programs={}, settings=TOOLS) as session:
        outcome = await session.send("change a, delete b")
        assert isinstance(outcome, Proposed)
        assert outcome.proposals == ("a", "b")
        assert world.files() == ("a", "b")
        assert world.read("a") == b"1"
        assert (results(session)[-1]["code"], results(session)[-1]["output"]) == (0, "changed")
        await session.commit()
        assert world.files() == ("a",)
        assert world.read("a") == b"changed"


async def test_what_the_policy_allows_is_written_and_what_it_denies_is_dropped_and_reported() -> None:
    world = world_of(a="1", b="2")
    replies: list[ScriptedReply] = [use("shell__run", {"script": "cp a c && rm b"}), run("cat", "b"), "Done."]
    denying = policy(world_delete="deny")
    async with memory_session(replies, world=world, policy=denying, programs={}, settings=TOOLS) as session:
        await session.send("go")
        first, second = results(session)
        assert first["changes"] == [{"path": "c", "kind": "created", "verdict": "written"}]
        assert first["refused"] == [
            {"path": "b", "because": "world.delete is fixed to deny (rule world.delete)"}
        ]
        assert second["output"] == "2"
        assert world.read("c") == b"1"
        assert session.proposals() == ()


async def test_what_the_policy_escalates_must_be_approved_by_name_before_it_is_committed() -> None:
    world = world_of(a="1")
    replies = [run("tee", "Makefile", stdin="all:"), "Done."]
    asking = policy(world_write="escalate")
    async with memory_session(replies, world=world, policy=asking, programs={}, settings=TOOLS) as session:
        await session.send("go")
        (proposal,) = session.proposals()
        assert proposal.asks == "world.write is fixed to escalate (rule world.write)"
        with pytest.raises(InvalidInput, match="approval by name: Makefile"):
            await session.commit()
        assert await session.commit("Makefile") == ("Makefile",)
        assert world.read("Makefile") == b"all:"


async def test_a_commit_of_everything_leaves_what_asks_until_it_is_approved() -> None:
    class AskAboutMakefile(FixedPolicy):
        def judge(self, request):  # type: ignore[no-untyped-def]
            asks = request.call.arguments.get("path") == "Makefile"
            return policy(world_write="escalate" if asks else "stage").judge(request)

    replies: list[ScriptedReply] = [use("shell__run", {"script": "cp a b && cp a Makefile"}), "Done."]
    async with memory_session(
        replies, world=world_of(a="1"), policy=AskAboutMakefile(default="allow"), programs={}, settings=TOOLS
    ) as session:
        await session.send("go")
        assert await session.commit() == ("b",)
        assert [each.path for each in session.proposals()] == ["Makefile"]
        assert await session.commit(approve=True) == ("Makefile",)


async def test_the_events_say_what_ran_and_the_verdicts_are_on_record_before_the_outcome() -> None:
    replies = [run("tee", "a", stdin="x" * 100_000), "Done."]
    async with memory_session(replies, policy=STAGING, programs={}, settings=TOOLS) as session:
        await session.send("go")
        kinds = [
            type(each)
            for each in events(session)
            if isinstance(
                each,
                SandboxOpened | CommandStarted | CommandEnded | EffectsJudged | CallIntended | CallSettled,
            )
        ]
        assert kinds == [
            CallIntended,
            SandboxOpened,
            CommandStarted,
            EffectsJudged,
            CommandEnded,
            CallSettled,
        ]
        ended = next(each for each in events(session) if isinstance(each, CommandEnded))
        assert ended.output is not None
        assert await session._store.blob(ended.output.digest) == b"x" * 100_000
        (result,) = results(session)
        assert result["blob"] == ended.output.digest
        assert len(str(result["output"])) < 33_000
        await session.close()
        assert isinstance(events(session)[-1], SandboxClosed)


async def test_a_program_that_writes_more_than_the_budget_has_keeps_nothing() -> None:
    world = world_of(a="1")
    replies = [run("tee", "a", "b", stdin="x" * 600), "Done."]
    async with memory_session(
        replies, world=world, programs={}, settings=TOOLS, limits=Limits(bytes_written=1000)
    ) as session:
        await session.send("go")
        (result,) = results(session)
        assert result["changes"] == []
        assert "budget" in str(result["refused"])
        assert world.read("a") == b"1"


async def test_what_a_program_wrote_counts_against_the_budget() -> None:
    replies = [run("tee", "a", stdin="x" * 600), "Done."]
    async with memory_session(
        replies, programs={}, settings=TOOLS, limits=Limits(bytes_written=1000)
    ) as session:
        await session.send("go")
        assert session.budget.spent.bytes_written == 600


async def test_a_cancelled_command_leaves_no_change() -> None:
    started = asyncio.Event()

    async def hang(process: ScriptedProcess) -> int:
        process.write("a", "half")
        started.set()
        await asyncio.Event().wait()
        return 0

    world = world_of(a="1")
    replies = [run("hang"), run("cat", "a"), "Done."]
    async with memory_session(replies, world=world, programs={"hang": hang}, settings=TOOLS) as session:
        turn = asyncio.create_task(session.send("go"))
        await started.wait()
        await session.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert world.read("a") == b"1"
        await session.send("and now?")
        settled = [each for each in events(session) if isinstance(each, CallSettled)]
        assert settled[0].status == "cancelled"
        assert isinstance(settled[1].result, dict)
        assert settled[1].result["output"] == "1"


async def test_a_program_may_run_longer_than_other_calls() -> None:
    replies = [run("sleep", "0.3", timeout_s=30), run("sleep", "30", timeout_s=1), "Done."]
    settings = Settings(acts_with="tools", call_seconds=0.1)
    async with memory_session(replies, programs={}, settings=settings) as session:
        await session.send("go")
        first, second = results(session)
        assert first["code"] == 0
        assert second["timed_out"] is True


async def test_a_background_process_lives_across_calls_and_its_changes_are_collected() -> None:
    async def server(process: ScriptedProcess) -> int:
        process.print("listening\n")
        process.ports = (8000,)
        while True:
            line = await process.input.get()
            process.write("log", line)
            process.print(b"got " + line)

    replies: list[ScriptedReply] = [
        use("shell__start", {"argv": ["server"], "name": "dev", "ready": {"port": 8000}}),
        use("shell__write", {"process": "p1", "input": "hello"}),
        use("shell__read", {"process": "p1", "wait_s": 5, "after": 10}),
        "Started.",
        use("shell__stop", {"process": "p1"}),
        "Stopped.",
    ]
    async with memory_session(
        replies, policy=STAGING, programs={"server": server}, settings=TOOLS
    ) as session:
        await session.send("start it")
        settled = [each for each in events(session) if isinstance(each, CallSettled)]
        started, _, read = (each.result for each in settled)
        assert started == {
            "process": "p1",
            "output": "listening\n",
            "ports": [8000],
            "is_running": True,
            "is_ready": True,
        }
        assert isinstance(read, dict)
        assert read["output"] == "got hello"
        assert read["changes"] == [{"path": "log", "kind": "created", "verdict": "staged"}]
        assert [(each.name, each.is_running) for each in session.processes()] == [("dev", True)]
        await session.send("stop it")
        assert [each.is_running for each in session.processes()] == [False]
        assert any(isinstance(each, ProcessEnded) for each in events(session))


async def test_a_rejected_change_does_not_come_back_while_a_background_process_runs() -> None:
    async def server(process: ScriptedProcess) -> int:
        await process.input.get()
        return 0

    replies: list[ScriptedReply] = [
        use("shell__start", {"argv": ["server"]}),
        use("shell__run", {"argv": ["tee", "new.txt"], "stdin": "new"}),
        "Done.",
        use("shell__run", {"argv": ["true"]}),
        "Done.",
    ]
    programs = {"server": server}
    async with memory_session(replies, policy=STAGING, programs=programs, settings=TOOLS) as session:
        await session.send("write it")
        await session.reject()
        await session.send("run another")
        assert results(session)[-1]["changes"] == []
        assert session.proposals() == ()


async def test_without_a_sandbox_the_tools_do_not_exist_and_the_model_is_not_told() -> None:
    seen: list[Prompt] = []

    def answer(prompt: Prompt) -> Reply:
        seen.append(prompt)
        return say("Done.")

    async with memory_session([answer], settings=TOOLS) as session:
        await session.send("go")
    async with memory_session([answer], settings=TOOLS, programs={}) as session:
        await session.send("go")
    without, with_programs = (f"{prompt.system} {prompt.tools}" for prompt in seen)
    assert "shell" not in without
    assert "shell__run" in with_programs
    assert "Run the tests after you change something" in with_programs


async def test_a_command_of_the_person_is_a_turn_without_a_model_that_the_model_sees_later() -> None:
    seen: list[Prompt] = []

    def answer(prompt: Prompt) -> Reply:
        seen.append(prompt)
        return say("I see.")

    output: list[str] = []
    async with memory_session([answer], programs={}, policy=STAGING, world=world_of(a="1")) as session:
        session.on_output = output.append
        await session.execute("echo hello && cp a b", language="shell")
        assert output == ["hello\n"]
        await session.send("what did I run?")
    texts = [message.text for message in seen[0].messages if isinstance(message, UserMessage)]
    assert texts[0] == "[The person ran a command]\n$ echo hello && cp a b"
    assert "hello" in texts[1]


async def test_a_command_cannot_be_run_where_no_sandbox_stands() -> None:
    async with memory_session() as session:
        with pytest.raises(InvalidInput, match="cannot run programs"):
            await session.execute("echo", language="shell")


async def test_a_command_that_a_crash_interrupted_is_unknown_and_does_not_run_again() -> None:
    ran: list[str] = []

    async def count(process: ScriptedProcess) -> int:
        ran.append("count")
        return 0

    async with memory_session([], policy=STAGING, programs={"count": count}) as session:
        call = Call(
            id=call_id(1, 1),
            operation="shell.run",
            arguments={"script": "count", "timeout_s": 1800},
            principal=PERSON,
        )
        effect = JudgedEffect(effect=FileEffect(path="a", kind="created"), verdict="stage")
        await session._journal.append(
            CodePosted(turn=1, code="count", language="shell", principal=PERSON),
            CallIntended(
                call=call,
                decision=Decision(verdict="allow", rule="r", reason=""),
                digest=call.digest,
                tool_digest="",
            ),
            EffectsJudged(call=call.id, effects=(effect,)),
        )
        outcome = await session.advance()
        assert isinstance(outcome, Error)
        assert outcome.code == "command-interrupted"
        assert ran == []
        assert session.proposals() == ()


async def test_secrets_of_the_workspace_are_hidden_from_programs() -> None:
    world = world_of(a="1")
    world.write(".env", "KEY=1")
    world.write("deep/id_ed25519", "secret")
    world.write("cert.pem", "-----BEGIN CERTIFICATE-----")
    world.write("key.pem", "-----BEGIN PRIVATE KEY-----")

    async def listing(process: ScriptedProcess) -> int:
        process.print(" ".join(sorted(process.files)))
        return 0

    replies = [run("listing"), run("tee", ".env", stdin="x"), "Done."]
    async with memory_session(replies, world=world, programs={"listing": listing}, settings=TOOLS) as session:
        await session.send("go")
        first, second = results(session)
        assert first["output"] == "a cert.pem"
        assert "hidden" in str(second["refused"])
        assert world.read(".env") == b"KEY=1"


# -- on disk


def git_free_folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("1")
    return project


async def start(
    tmp_path: Path,
    replies: Sequence[ScriptedReply],
    *,
    rules: Policy = STAGING,
    programs: Mapping[str, Program] = {},
) -> tuple[Runtime, Session, ScriptedSandboxes]:
    sandboxes = ScriptedSandboxes(programs)
    runtime = await Runtime.start(home=tmp_path / "home", settings=TOOLS, servers=(), sandboxes=sandboxes)
    project = tmp_path / "project"
    if not project.exists():
        git_free_folder(tmp_path)
    session = await runtime.create(model=ScriptedModel(replies), workspace=project, policy=rules)
    return runtime, session, sandboxes


async def test_a_rewind_undoes_what_programs_changed_and_empties_scratch(tmp_path: Path) -> None:
    async def build(process: ScriptedProcess) -> int:
        process.print("cached" if "__pycache__/x" in process.files else "fresh")
        process.write("__pycache__/x", "1")
        process.write("a", "built")
        return 0

    replies = [run("build"), run("build", stdin="again"), "Done."]
    runtime, session, sandboxes = await start(tmp_path, replies, rules=policy(), programs={"build": build})
    project = tmp_path / "project"
    await session.send("go")
    assert [each["output"] for each in results(session)] == ["fresh", "cached"]
    assert (project / "a").read_text() == "built"
    assert not (project / "__pycache__").exists()
    await session.rewind(0)
    assert (project / "a").read_text() == "1"
    assert sandboxes.opened[0].is_closed
    await session.send("go")
    assert [each["output"] for each in results(session)][2:] == ["fresh", "cached"]
    await runtime.close()


async def test_staged_effects_survive_a_restart_and_protected_files_are_never_changed(tmp_path: Path) -> None:
    replies = [run("tee", "a", ".holdfast/policy.yaml", stdin="changed"), "Done."]
    runtime, session, _ = await start(tmp_path, replies)
    await session.send("go")
    assert "structural-protected-path" in str(results(session)[-1]["refused"])
    name = session.id
    await runtime.close()
    runtime = await Runtime.start(
        home=tmp_path / "home", settings=TOOLS, servers=(), sandboxes=ScriptedSandboxes()
    )
    whole = [*replies, run("cat", "a"), "Done."]
    session = await runtime.resume(name, model=ScriptedModel(whole), policy=STAGING)
    assert [each.path for each in session.proposals()] == ["a"]
    await session.send("look")
    assert [each["output"] for each in results(session)] == ["changed", "changed"]
    await runtime.close()


@pytest.mark.parametrize(("enabled", "expected"), [("auto", "none"), (True, "copy"), (False, "none")])
async def test_a_weaker_sandbox_is_used_only_where_the_settings_want_it(
    tmp_path: Path, enabled: Literal["auto"] | bool, expected: str
) -> None:
    runtime = await Runtime.start(
        home=tmp_path / "home",
        settings=Settings(shell=ShellSettings(enabled=enabled)),
        servers=(),
        sandboxes=ScriptedSandboxes(status=SandboxStatus(tier="copy")),
    )
    session = await runtime.create(model=ScriptedModel([]), policy=STAGING)
    assert session.sandbox_status.tier == expected
    await runtime.close()


class CountingWorld(MemoryWorld):
    """Counts walks over all files and listings of folders, which cost as much as there are files."""

    walks = 0

    def files(self) -> tuple[str, ...]:
        self.walks += 1
        return super().files()

    def entries(self, path: str = ".") -> tuple[Stat, ...]:
        self.walks += 1
        return super().entries(path)


async def _change_many(process: ScriptedProcess) -> int:
    for number in range(int(process.argv[1])):
        process.write(f"new/{number % 5}/{number}", str(number))
        del process.files[f"old/{number % 5}/{number}"]
    return 0


@pytest.mark.parametrize("verdict", ["stage", "allow"])
async def test_many_changed_files_cost_no_walk_each_and_leave_the_event_loop_to_others(
    verdict: Verdict,
) -> None:
    walks, turns = {}, {}
    for count in (100, 1_000):
        world = CountingWorld()
        for number in range(count):
            world.write(f"old/{number % 5}/{number}", "old")
        others = 0

        async def count_turns() -> None:
            nonlocal others
            while True:
                others += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count_turns())
        replies = [run("change", str(count)), "Done."]
        rules = policy(world_write=verdict, world_delete=verdict)
        async with memory_session(
            replies, world=world, policy=rules, programs={"change": _change_many}, settings=TOOLS
        ) as session:
            world.walks = 0
            await session.send("go")
            walks[count], turns[count] = world.walks, others
            if verdict == "stage":
                await session.commit()
        counting.cancel()
        assert world.files() == tuple(sorted(f"new/{number % 5}/{number}" for number in range(count)))
    assert walks[1_000] <= walks[100]
    # Judging, storing and applying each let others run after every 20 files.
    assert turns[1_000] - turns[100] >= 3 * (2 * 900) // 20


async def test_a_command_cancelled_while_its_changes_are_applied_has_applied_and_recorded_all() -> None:
    class CancellingWorld(MemoryWorld):
        written = 0

        def write(
            self, path: str, content: bytes | str, *, overwrite: bool = True, mode: int | None = None
        ) -> Change:
            self.written += 1
            if self.written == 250:
                turn.cancel()
            return super().write(path, content, overwrite=overwrite, mode=mode)

    world = CancellingWorld()
    for number in range(200):
        world.write(f"old/{number % 5}/{number}", "old")
    replies = [run("change", "200"), "Done."]
    async with memory_session(
        replies, world=world, programs={"change": _change_many}, settings=TOOLS
    ) as session:
        turn = asyncio.create_task(session.send("go"))
        with pytest.raises(asyncio.CancelledError):
            await turn
        (settled,) = [each for each in events(session) if isinstance(each, CallSettled)]
    assert settled.status == "cancelled"
    assert len(settled.changes) == 400
    assert world.files() == tuple(sorted(f"new/{number % 5}/{number}" for number in range(200)))
