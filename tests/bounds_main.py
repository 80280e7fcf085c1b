"""One case of docs/security/limits.md in its own process: `python -m tests.bounds_main CASE FOLDER` prints its peak memory in MB."""

import asyncio
import hashlib
import io
import json
import os
import sys
import zipfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.core import digest_bytes
from holdfast.core.errors import HoldfastError
from holdfast.core.events import Event
from holdfast.guests import Sandbox
from holdfast.store import ArchiveLimits


def policy_file(folder: Path) -> None:
    """A policy of 64 MB."""
    from holdfast.policy import load_policy

    (folder / "large.yaml").write_bytes(b"policy: x\n" + b"#" * (64 << 20))
    _refused(lambda: load_policy(str(folder / "large.yaml")))


def policy_values(folder: Path) -> None:
    """A policy with as many values, globs and patterns as one may have."""
    from holdfast.policy import load_policy

    rules = "".join(f"- {{name: r{number}, allow: world.read}}\n" for number in range(38_000))
    globs = ", ".join(str(number) + "*a" * 400 for number in range(300))
    letters = "".join(map(chr, range(0x400, 0x4E0)))  # each its own class of characters, for 8,000 states
    patterns = ", ".join(f"'{number}(a|b)*a(a|b){{11}}{letters}'" for number in range(3))
    test = f"- {{name: p, allow: llm.intent, arguments: {{intent: {{matches: [{patterns}]}}}}}}\n"
    paths = f"- {{name: g, allow: world.read, paths: [{globs}]}}\n"
    (folder / "values.yaml").write_text(f"policy: x\nrules:\n{rules}{paths}{test}")
    load_policy(str(folder / "values.yaml"))


def archive_bomb(folder: Path) -> None:
    """An archive whose journal expands to 2 GB."""
    from holdfast.store.archive.format import ArchiveReader

    path = folder / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("events.jsonl", "w", force_zip64=True) as out:
            for _ in range(2000):
                out.write(bytes(1 << 20))
        archive.writestr("manifest.json", "{}")
    _refused(lambda: ArchiveReader(path).journal())


def archive_line(folder: Path) -> None:
    """An archive with one event of 60 MB of text that cannot be compressed."""
    from holdfast.store.archive.format import ArchiveReader

    path = folder / "line.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("events.jsonl", b'{"session": "' + os.urandom(30 << 20).hex().encode())
        archive.writestr("manifest.json", "{}")
    _refused(lambda: ArchiveReader(path).journal())


def archive_history(folder: Path) -> None:
    """The import of an archive with the largest history, in events that are as small as possible."""
    from holdfast.core.events import Noted

    count = (ArchiveLimits().journal_bytes - 2000) // 234  # the bytes of one line
    _import(folder, (Noted(code="x", text="y") for _ in range(count)))


def archive_content(folder: Path) -> None:
    """The import of an archive with a content of 512 MB, which the person has to ask for."""
    from holdfast.core.events import Noted

    _import(folder, [Noted(code="x", text="")], [bytes(1 << 20)] * 512, "--large")


def archive_files(folder: Path) -> None:
    """The import of an archive with the longest list of files."""
    from holdfast.core.events import RestorePointMade
    from holdfast.world.restore_points.manifest import Manifest, TreeEntry, pack

    name = "x" * 110
    entries = tuple(
        TreeEntry(path=f"{name}{number:06}", kind="folder", mode=0o755) for number in range(100_000)
    )
    manifest = pack(Manifest(entries=entries))
    assert (14 << 20) < len(manifest) < (16 << 20), len(manifest)
    made = RestorePointMade(turn=0, manifest=digest_bytes(manifest))
    del entries
    _import(folder, [made], [manifest])


def shown_argument(folder: Path) -> None:
    """An argument of 64 million characters, shown in one line and in an approval."""
    from holdfast.cli.approvals.text import fit_lines
    from holdfast.cli.views.narrator import describe_call
    from holdfast.core import Call, call_id
    from holdfast.services import call_lines

    call = Call(id=call_id(1, 1), operation="box.put", arguments={"value": "x" * (64 << 20)})
    assert len(describe_call(call)) < 500
    assert len(fit_lines(call_lines(call))[0]) < 100


def nested_call(folder: Path) -> None:
    """A call that is nested 200,000 levels deep."""
    from holdfast.cli import main

    os.environ["HOLDFAST_HOME"] = str(folder / "home")
    nested = '{"operation": "world.list", "arguments": {"a": ' + "[" * 200_000 + "]" * 200_000 + "}}"
    sys.stderr = io.StringIO()
    assert main(["policy", "check", "--policy", "project", "--call", nested]) != 0


def model_line(folder: Path) -> None:
    """A model server that sends 300 MB without the end of a line."""
    import httpx2

    from holdfast.models.bounded_body import limit_lines
    from holdfast.models.errors import ReplyTooLong

    class Endless(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for _ in range(4800):
                yield b"x" * 65536

        async def aclose(self) -> None:
            pass

    async def read() -> None:
        hooks = {"response": [limit_lines(4_000_000)]}
        transport = httpx2.MockTransport(lambda _: httpx2.Response(200, stream=Endless()))
        async with httpx2.AsyncClient(transport=transport, event_hooks=hooks) as client:
            try:
                async with client.stream("GET", "http://127.0.0.1:1/") as response:
                    async for _ in response.aiter_lines():
                        pass
            except ReplyTooLong:
                return
        raise AssertionError("the line was not cut off")

    asyncio.run(read())


def mcp_line(folder: Path) -> None:
    """An MCP server that answers with 40 MB, which is more than a line may have."""
    _call_hostile_server(folder, "oversized")


def mcp_endless(folder: Path) -> None:
    """An MCP server whose answer never ends."""
    _call_hostile_server(folder, "endless")


def mcp_parts(folder: Path) -> None:
    """An MCP server that answers with more parts than an answer may have."""
    _call_hostile_server(folder, "many-blocks")


def stray_files(folder: Path) -> None:
    """20,000 response files that answer nothing, in a session that runs."""
    from holdfast.app import Runtime
    from holdfast.core import Ok
    from holdfast.policy import FixedPolicy
    from holdfast.session import Settings

    async def work() -> None:
        runtime = await Runtime.start(home=folder / "home", settings=Settings(), servers=())
        try:
            session = await runtime.create(policy=FixedPolicy(default="allow"), needs_model=False)
            place = folder / "home" / "sessions" / session.id / "escalations"
            for number in range(20_000):
                (place / f"response-{number}.json").write_text("{}")
            assert isinstance(await session.execute("1 + 1"), Ok)
        finally:
            await runtime.close()

    asyncio.run(work())


def roster(folder: Path) -> None:
    """A roster of teams with 200,000 names."""
    from holdfast.store import Home
    from holdfast.teams.config.parse import parse_roster

    text = "teams:\n" + "".join(f"  t{number}: {{}}\n" for number in range(200_000))
    _refused(lambda: parse_roster(text, source="teams.yaml", home=Home(folder)))


def large_text(folder: Path) -> None:
    """Code that reads and writes a text of the largest size that one call takes."""
    _edit(folder, ("x" * 99 + "\n").encode() * 1000, 671, "r", "w")


def large_binary(folder: Path) -> None:
    """Code that reads and writes 50 MB of bytes, which calls carry as base64."""
    _edit(folder, os.urandom(1_000_000), 50, "rb", "wb")


def large_diff(folder: Path) -> None:
    """The diff of a file of 600,000 different lines, some of which changed."""
    from holdfast.world import MemoryWorld, StagedWorld

    text = "".join(f"{number},{number * 7 % 1000}\n" for number in range(600_000))
    world = MemoryWorld()
    world.write("f", text.encode())
    staged = StagedWorld(world)
    staged.write("f", text.replace("\n7,", "\nseven,").replace("\n599990,", "\nlast,").encode())
    (proposal,) = staged.proposals()
    assert len(proposal.diff) < 1000


def shown_proposal(folder: Path) -> None:
    """`holdfast proposals show` of a new text of the largest size that one call takes, which another process staged."""
    _show_proposal(folder, "''.join('%099d\\n' % i for i in range(671_000))", 67_000_000)


def shown_proposal_as_json(folder: Path) -> None:
    """`holdfast proposals show --json` of the same text."""
    _show_proposal(folder, "''.join('%099d\\n' % i for i in range(671_000))", 67_000_000, "--json")


def shown_proposal_of_emoji(folder: Path) -> None:
    """`holdfast proposals show` of 60 MB of emoji, which take 4 bytes each, also in memory."""
    _show_proposal(folder, "('\U0001f600' * 24 + '%03d\\n' % 7) * 590_000", 59_500_000)


def shown_proposal_of_emoji_as_json(folder: Path) -> None:
    """`holdfast proposals show --json` of the same emoji."""
    _show_proposal(folder, "('\U0001f600' * 24 + '%03d\\n' % 7) * 590_000", 59_000_000, "--json")


def shown_proposal_with_an_emoji(folder: Path) -> None:
    """`holdfast proposals show` of 60 MB with one emoji, which makes every other character take 4 bytes in memory."""
    _show_proposal(folder, "'\U0001f600' + ('a' * 99 + '\\n') * 600_000", 0)


def shown_proposal_of_controls(folder: Path) -> None:
    """`holdfast proposals show` of 60 MB of control characters, which are shown as eight, in lines of 4 MB."""
    _show_proposal(folder, "('\\x01' * 4_000_000 + '\\n') * 15", 480_000_000)


def shown_proposal_of_controls_as_json(folder: Path) -> None:
    """`holdfast proposals show --json` of 60 MB of control characters, which take 360 MB as JSON."""
    _show_proposal(folder, "('\\x01' * 4_000_000 + '\\n') * 15", 360_000_000, "--json")


def shown_proposal_of_one_line(folder: Path) -> None:
    """`holdfast proposals show` of 60 MB in one line."""
    _show_proposal(folder, "'\\x01' * 60_000_000", 0)


def value_in_variable(folder: Path) -> None:
    """Code that keeps a text of 60 MB in a variable, and replaces it in a later run."""
    _run(folder, "python", "x = 'a' * (60 << 20)", "1", "x = 'b' * (60 << 20)")


def file_in_variable(folder: Path) -> None:
    """Code that edits a file of 50 MB with a variable, and does not close it."""
    code = "t = open('f').read()\nopen('f', 'w').write(t.replace('a', 'b'))"
    _run(folder, "python", code, file=b"a" * 99 + b"\n", count=500_000)


def text_with_an_emoji(folder: Path) -> None:
    """Code that edits a file of 50 MB of ASCII with one emoji, which takes 200 MB as one text of Python."""
    code = "with open('f') as f: t = f.read()\nwith open('g', 'w') as f: f.write(t.replace('a', 'b'))"
    _edit_with_an_emoji(folder, "python", code)


def text_with_an_emoji_not_closed(folder: Path) -> None:
    """The same with files that the code does not close."""
    _edit_with_an_emoji(
        folder, "python", "t = open('f').read()\nopen('g', 'w').write(t.replace('a', 'b'))\nNone"
    )


def text_with_an_emoji_in_lisp(folder: Path) -> None:
    """The same in Lisp, which holds both texts while it writes."""
    code = '(let* ((t (world/read "f")) (r (string-replace t "a" "b"))) (world/write "g" r))'
    _edit_with_an_emoji(folder, "lisp", code)


def text_with_an_emoji_as_a_call(folder: Path) -> None:
    """Code that reads the same file with a call, which names the limit."""
    for sandbox in ("python", "system", "wasi"):
        _run(
            folder, sandbox, "world.read(path='f')", file="\U0001f600aaa".encode(), count=8_000_000, is_refused=True
        )  # fmt: skip


def value_at_the_end(folder: Path) -> None:
    """Code whose last line has a value of 230 MB."""
    _run(folder, "python", "'a' * (230 << 20)", is_refused=True)


def value_of_controls(folder: Path) -> None:
    """Code whose last line has a value of 60 MB, which takes 360 MB as JSON."""
    _run(folder, "python", "'\\x01' * (60 << 20)")


def large_exception(folder: Path) -> None:
    """Code that raises an exception with a message of 70 MB."""
    _run(folder, "python", "raise ValueError('a' * (70 << 20))", is_refused=True)


def large_argument(folder: Path) -> None:
    """Code that calls a tool with 200 MB."""
    _run(folder, "python", "world.write(path='g', content='a' * (200 << 20))", is_refused=True)


def read_controls(folder: Path) -> None:
    """Code that reads 60 MB of control characters, which take 360 MB as JSON."""
    _run(folder, "python", "len(world.read(path='f'))", file=b"\x01" * 1000, count=60_000)


def system_text(folder: Path) -> None:
    """Code of the project's Python that reads and writes the largest text of one call."""
    code = "t = world.read(path='f')\nworld.write(path='g', content=t)\ndel t"
    _run(folder, "system", code, file=b"a" * 99 + b"\n", count=640_000)


def system_controls(folder: Path) -> None:
    """Code of the project's Python that reads 60 MB of control characters."""
    code = "world.read(path='f')"
    _run(folder, "system", code, file=b"\x01" * 1000, count=60_000, is_refused=True)


def system_many(folder: Path) -> None:
    """Code of the project's Python that writes 30 MB ten times."""
    _run(folder, "system", "for i in range(10): world.write(path='g', content=str(i) * (30 << 20))")


def wasi_text(folder: Path) -> None:
    """Code in WebAssembly that reads and writes the largest text of one call."""
    code = "t = world.read(path='f')\nworld.write(path='g', content=t)\ndel t"
    _run(folder, "wasi", code, file=b"a" * 99 + b"\n", count=640_000)


def wasi_exception(folder: Path) -> None:
    """Code in WebAssembly that raises an exception with a message of 60 MB."""
    _run(folder, "wasi", "raise ValueError('a' * (60 << 20))", is_refused=True)


def lisp_text(folder: Path) -> None:
    """A Lisp program that makes texts of 10 MB until it may not have more."""
    code = '(define (grow all) (grow (cons (string-repeat "a" 10000000) all))) (grow (list))'
    _run(folder, "lisp", code, is_refused=True)


def lisp_variables(folder: Path) -> None:
    """Lisp programs that keep a text with an emoji in a variable, and two texts of 60 MB, which is refused."""
    _run(folder, "lisp", '(define a (string-append "\U0001f600" (string-repeat "a" 50000000)))')
    code = '(define a (string-repeat "a" 60000000)) (define b (string-repeat "b" 60000000))'
    _run(folder, "lisp", code, is_refused=True)


CASES: dict[str, Callable[[Path], None]] = {
    each.__name__: each
    for each in (
        policy_file, policy_values, archive_bomb, archive_line, archive_history, archive_content, archive_files, shown_argument, nested_call, model_line, mcp_line, mcp_endless, mcp_parts,
        stray_files, roster, large_text, large_binary, large_diff, shown_proposal, shown_proposal_as_json,
        shown_proposal_of_emoji, shown_proposal_of_emoji_as_json, shown_proposal_with_an_emoji, shown_proposal_of_controls,
        shown_proposal_of_controls_as_json, shown_proposal_of_one_line, value_in_variable, file_in_variable, text_with_an_emoji, text_with_an_emoji_not_closed, text_with_an_emoji_in_lisp, text_with_an_emoji_as_a_call, value_at_the_end,
        value_of_controls, large_exception, large_argument, read_controls, system_text, system_controls, system_many, wasi_text,
        wasi_exception, lisp_text, lisp_variables,
    )
}  # fmt: skip


def _refused(work: Callable[[], object]) -> None:
    try:
        work()
    except HoldfastError:
        return
    raise AssertionError("the input was accepted")


def _import(folder: Path, events: Iterable[Event], content: Sequence[bytes] = (), *options: str) -> None:
    """Import an archive, in this process; it is written by another one, whose memory does not count."""
    path = folder / "session.zip"
    if (child := os.fork()) == 0:
        _write_archive(path, events, content)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    from holdfast.cli import main

    os.environ["HOLDFAST_HOME"] = str(folder / "home")
    sys.stdout = sys.stderr = io.StringIO()
    code, shown = main(["import", *options, str(path)]), sys.stderr.getvalue()
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    assert code == 0, shown


def _write_archive(path: Path, events: Iterable[Event], content: Sequence[bytes]) -> None:
    from tests.store.sample_events import opened

    from holdfast.core import SessionId, encode
    from holdfast.core.events import GENESIS, event_hash
    from holdfast.store.archive.format import RawEvent, pack
    from holdfast.store.contract import ArchiveManifest

    session, lines, previous = SessionId("2026-01-01-00-00-00-000-aaaa"), [], GENESIS
    for seq, event in enumerate([opened(), *events], start=1):
        body = encode(event)
        previous = event_hash(previous, session, seq, seq, body)
        lines.append(RawEvent(session=session, seq=seq, at_ms=seq, hash=previous, body=body))
    manifest = ArchiveManifest(session=session, events=len(lines), last_hash=previous.hex(), exported_ms=1)
    with path.open("wb") as file:
        pack(file, manifest, lines, ())
    hashed = hashlib.sha256()
    for piece in content:
        hashed.update(piece)
    name = f"blobs/{hashed.hexdigest()}"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as archive, archive.open(name, "w") as blob:
        for piece in content:
            blob.write(piece)


def _edit(folder: Path, piece: bytes, count: int, read: str, write: str) -> None:
    """Let code copy a file that consists of equal pieces."""
    from holdfast.app import Runtime
    from holdfast.core import Ok
    from holdfast.guests import GuestLimits
    from holdfast.policy import FixedPolicy
    from holdfast.session import Settings

    # Generous times, as below.
    settings = Settings(code=GuestLimits(seconds=120, wall_seconds=240))
    code = f"def edit():\n    with open('f', {read!r}) as f: t = f.read()\n    with open('g', {write!r}) as f: f.write(t)\nedit()"

    async def work() -> None:
        runtime = await Runtime.start(home=folder / "home", settings=settings, servers=())
        try:
            session = await runtime.create(policy=FixedPolicy(default="allow"), needs_model=False)
            place = folder / "home" / "sessions" / session.id / "workspace"
            with (place / "f").open("wb") as file:
                file.writelines([piece] * count)
            assert isinstance(await session.execute(code), Ok)
            assert (place / "g").stat().st_size == len(piece) * count
        finally:
            await runtime.close()

    asyncio.run(work())


def _edit_with_an_emoji(folder: Path, sandbox: Sandbox, code: str) -> None:
    """Let code replace each "a" in a file of 50 MB by "b", and compare the new file byte for byte."""
    line, emoji = b"a" * 99 + b"\n", "\U0001f600".encode()
    _run(folder, sandbox, code, file=line, count=500_000, start=emoji)
    [written] = (folder / "home" / "sessions").glob("*/workspace/g")
    with written.open("rb") as file:
        assert file.read(4) == emoji
        for _ in range(500_000):
            assert file.read(100) == b"b" * 99 + b"\n"
        assert not file.read(1)


def _show_proposal(folder: Path, content: str, shown_bytes: int, *options: str) -> None:
    """Show a new file, in this process; another one, whose memory does not count, staged it."""
    if (child := os.fork()) == 0:
        asyncio.run(_stage(folder, content))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    from holdfast.cli import main

    os.environ["HOLDFAST_HOME"] = str(folder / "home")
    with (folder / "shown").open("w", encoding="utf-8") as sys.stdout:
        code = main(["proposals", "show", *options])
    sys.stdout = sys.__stdout__
    assert code == 0
    assert (folder / "shown").stat().st_size > shown_bytes


async def _stage(folder: Path, content: str) -> None:
    """Stage a new file with the content that an expression makes."""
    from holdfast.app import Runtime
    from holdfast.core import Proposed
    from holdfast.guests import GuestLimits
    from holdfast.policy import FixedPolicy
    from holdfast.session import Settings

    settings = Settings(code=GuestLimits(seconds=120, wall_seconds=240))
    runtime = await Runtime.start(home=folder / "home", settings=settings, servers=())
    try:
        policy = FixedPolicy(default="allow", verdicts={"world.write": "stage"})
        session = await runtime.create(policy=policy, needs_model=False)
        code = f"world.write(path='g', content={content})"
        outcome = await session.execute(code)
        assert isinstance(outcome, Proposed), outcome
    finally:
        await runtime.close()


def _run(
    folder: Path,
    sandbox: Sandbox,
    *programs: str,
    file: bytes = b"",
    count: int = 0,
    start: bytes = b"",
    is_refused: bool = False,
) -> None:
    """Run programs of one session, with a file of equal pieces in its folder."""
    from tests.guests.wasi.running import KEY
    from tests.installed_programs import cache_folder

    from holdfast.app import Runtime
    from holdfast.core import Error, Ok
    from holdfast.guests import Engines, GuestLimits
    from holdfast.policy import FixedPolicy
    from holdfast.session import Settings

    # Generous times: this is about memory, also on a busy machine.
    settings = Settings(code=GuestLimits(seconds=120, wall_seconds=240))

    async def work() -> None:
        engines = Engines(key=KEY, cache=cache_folder("wasi"))
        runtime = await Runtime.start(home=folder / "home", settings=settings, engines=engines, servers=())
        try:
            session = await runtime.create(
                policy=FixedPolicy(default="allow"), needs_model=False, sandbox=sandbox
            )
            with (folder / "home" / "sessions" / session.id / "workspace" / "f").open("wb") as large:
                large.write(start)
                large.writelines([file] * count)
            for program in programs:
                outcome = await session.execute(program)
                assert isinstance(outcome, Error if is_refused else Ok), outcome
        finally:
            await runtime.close()

    asyncio.run(work())


def _call_hostile_server(folder: Path, kind: str) -> None:
    from tests.mcp.toolset_harness import ToolsetHarness, spec_for

    from holdfast.mcp import McpToolset, Pins

    async def call() -> None:
        toolset = McpToolset(spec_for("hostile", kind), workspace=folder, pins=Pins())
        try:
            await toolset.start()
            with suppress(HoldfastError):
                await ToolsetHarness(toolset).call("work")
        finally:
            await toolset.close()

    asyncio.run(call())


def _peak_kb() -> int:
    """The peak of this program. `ru_maxrss` would include the process that started it, before it executed this one."""
    [line] = [
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")
    ]
    return int(line.split()[1])


if __name__ == "__main__":
    CASES[sys.argv[1]](Path(sys.argv[2]))
    print(json.dumps(_peak_kb() // 1024))
