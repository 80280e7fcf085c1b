"""Fuzz targets: one function for each input that a stranger writes. A target returns, or raises what is a fault of ours.

An error that the person gets in words (`HoldfastError`) is a correct answer to bad input, and the target swallows it. The same
functions are driven by atheris, by the random mutator and, with the kept corpus, by the ordinary tests.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import httpx2
import mcp_types
import msgspec
from mcp.shared.message import SessionMessage

from holdfast.agent import Conversation
from holdfast.cli.views.resume import resume_notice
from holdfast.cli.views.session_log import log_lines
from holdfast.cli.views.session_table import row, sentence
from holdfast.core import (
    Call,
    FakeClock,
    Limits,
    SessionId,
    UserMessage,
    call_id,
)
from holdfast.core.errors import HoldfastError
from holdfast.core.events import GENESIS, Event, RecordedEvent, decode_event, event_hash
from holdfast.core.projection import ReplayedHistory
from holdfast.gate import Budget, CallIndex, Grants, LargeValues, LoopDetector, OutputFilter, audit_view
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.lang.printer import show
from holdfast.guests.lisp.lang.reader import read
from holdfast.mcp.client.notifications import RateLimiter
from holdfast.mcp.client.pending_requests import PendingRequests, ProtocolViolation
from holdfast.mcp.client.results import format_for_client, format_for_code, tool_error
from holdfast.mcp.client.stdio import parse_line
from holdfast.mcp.client.tool_definitions import read_definitions
from holdfast.models import ModelSettings, Prompt, RetryPolicy
from holdfast.models.bounded_body import limit_lines
from holdfast.models.provider_model import ProviderModel
from holdfast.models.providers import PROVIDERS
from holdfast.models.specs import parse_spec
from holdfast.policy import KNOWN_TOOLS, LexicalPaths, PolicyDocument, Request, RulePolicy, targets_of
from holdfast.policy.ironcurtain import parse_annotations, parse_compiled, parse_lists
from holdfast.policy.parser import parse_policy
from holdfast.session.import_archive import import_archive
from holdfast.session.status import Status
from holdfast.store import Home, MemoryStore
from holdfast.store.archive.format import RawEvent, pack
from holdfast.store.contract import ArchiveManifest
from holdfast.store.derived.search_text import searchable_texts
from holdfast.store.recovery.recovered_rows import classify_rows
from holdfast.store.recovery.sqlite_pages import read_rows
from holdfast.store.sanity import has_sane_numbers
from holdfast.store.summary import summarize
from holdfast.teams.config.parse import parse_roster

Target = Callable[[bytes], None]
MAX_BYTES = 64 * 1024
"""A target ignores what is beyond this; the size bounds have tests of their own."""
SESSION = SessionId("2026-01-02-03-04-05-006-abcd")


def policy_yaml(data: bytes) -> None:
    """A policy in YAML: parsed, then asked about calls."""
    with suppress(HoldfastError):
        _judge(parse_policy(_text(data), source="fuzz.yaml"))


def compiled_policy(data: bytes) -> None:
    """A compiled policy, its annotations and its lists: three documents between lines of `---`."""
    policy, annotations, lists, *_ = [*_text(data).split("\n---\n"), "", "", ""]
    with suppress(HoldfastError):
        _judge(
            parse_compiled(
                policy,
                source="compiled-policy.json",
                tools=parse_annotations(annotations, source="tool-annotations.json") if annotations else {},
                lists=parse_lists(lists, source="dynamic-lists.json") if lists else {},
                values={"workspace": "/workspace"},
            )
        )


def mcp_frames(data: bytes) -> None:
    """Lines of an MCP server that has two open requests: the messages, the list of tools and the results in them."""
    pending, rate = PendingRequests(), RateLimiter(FakeClock())
    for number in (1, 2):
        pending.record_sent(mcp_types.JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call"))
    for line in data.split(b"\n"):
        try:
            message = parse_line(line, rate, pending)
        except ProtocolViolation:
            return
        if message is not None:
            _use_message(message)


def session_archive(data: bytes) -> None:
    """An exported session: the bytes of a zip file, or lines of events that are packed into a valid one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.zip")
        if data[:2] == b"PK":
            path.write_bytes(data)
        else:
            _pack(path, data)
        home = Home(Path(folder, "home"))
        os.mkdir(home.root, 0o700)
        with suppress(HoldfastError):
            _run(_import(path, home))


def journal(data: bytes) -> None:
    """The events of a session, one in a line, in everything that is computed from them; or a damaged database."""
    if data[:6] == b"SQLite":
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder, "holdfast.db")
            database.write_bytes(data)
            classify_rows(read_rows(database, Path(folder, "holdfast.db-wal"))).journal()
        return
    recorded = _recorded(data)
    if recorded:
        with suppress(HoldfastError):
            _project(recorded)


def teams_file(data: bytes) -> None:
    """A roster of teams, in YAML or in the older JSON. `$FOLDER` is a folder that exists."""
    text = _text(data).replace("$FOLDER", str(Path(__file__).parent))
    for source in ("teams.yaml", "teams.json"):
        with suppress(HoldfastError):
            parse_roster(text, source=source, home=Home(Path("/nowhere")))


def lisp_reader(data: bytes) -> None:
    """A Lisp program: what is read and printed can be read again, and prints the same."""
    with suppress(LispError):
        for datum in read(_text(data)):
            printed = show(datum, max_characters=10 * MAX_BYTES)
            assert show(read(printed)[0], max_characters=10 * MAX_BYTES) == printed


def provider_stream(data: bytes) -> None:
    """The body of a model server's answer: the first byte chooses the provider, the second whether it streams."""
    names = ("anthropic", "openai", "openai-chat", "google")
    choice, body = data[:2].ljust(2, b"\0"), data[2:]
    kind = "text/event-stream" if choice[1] % 2 == 0 else "application/json"
    with suppress(HoldfastError):
        _run(_ask(names[choice[0] % len(names)], kind, body))


TARGETS: dict[str, Target] = {
    each.__name__: each
    for each in (
        policy_yaml, compiled_policy, mcp_frames, session_archive, journal, teams_file, lisp_reader, provider_stream,
    )
}  # fmt: skip


def _text(data: bytes) -> str:
    return data[:MAX_BYTES].decode("utf-8", "replace")


_CALLS: tuple[tuple[str, dict[str, str]], ...] = (
    ("world.read", {"path": "a/b.txt"}),
    ("world.write", {"path": "../x", "content": "y"}),
    ("world.move", {"source": "a", "destination": "b"}),
    ("net.fetch", {"url": "https://user@example.com:8443/x?y"}),
    ("world.list", {}),
)


def _judge(document: PolicyDocument) -> None:
    policy = RulePolicy(document)
    tools = KNOWN_TOOLS | dict(document.tools)
    for operation, arguments in _CALLS:
        tool = tools[operation]
        call = Call(id=call_id(1, 1), operation=operation, arguments=dict(arguments))
        targets = targets_of(tool, call.arguments, LexicalPaths())
        policy.judge(Request(call=call, tool=tool, targets=targets))
        policy.most_permissive_verdict(tool)


def _use_message(message: SessionMessage) -> None:
    raw = getattr(message.message, "result", None)
    if not isinstance(raw, dict):
        return
    with suppress(ValueError):
        listed = mcp_types.ListToolsResult.model_validate(raw, by_name=False)
        read_definitions([each.model_dump(by_alias=True, mode="json") for each in listed.tools])
    with suppress(ValueError):
        result = mcp_types.CallToolResult.model_validate(raw, by_name=False)
        for formatted in (format_for_code(result), format_for_client(result)):
            OutputFilter().filter_result(formatted)
        tool_error(result)


def _events(data: bytes) -> list[tuple[bytes, Event]]:
    """The lines that are events, as an import would take them."""
    found = []
    for line in data[:MAX_BYTES].split(b"\n"):
        try:
            event = decode_event(line)
        except msgspec.MsgspecError:
            continue
        if has_sane_numbers(event, 1_700_000_000_000):
            found.append((line, event))
    return found


def _recorded(data: bytes) -> list[RecordedEvent]:
    recorded: list[RecordedEvent] = []
    previous = GENESIS
    for seq, (body, event) in enumerate(_events(data), start=1):
        at_ms = 1_700_000_000_000 + seq
        link = event_hash(previous, SESSION, seq, at_ms, body)
        recorded.append(RecordedEvent(SESSION, seq, at_ms, event, link, previous))
        previous = link
    return recorded


def _project(recorded: list[RecordedEvent]) -> None:
    history, clock = ReplayedHistory(recorded), FakeClock()
    summary = summarize(SESSION, recorded).summary
    for now_ms in (0, 1_700_000_000_000):
        row(summary, now_ms)
        sentence(summary, now_ms, Home(Path("home")))
    resume_notice(summary, recorded, now_ms=0)
    Status(history)
    Conversation(history)
    Budget(history, turn_limits=Limits())
    Grants(history, clock=clock)
    LoopDetector(history)
    CallIndex(history, large_values=LargeValues(None))
    list(audit_view(recorded))
    for entry in recorded:
        list(log_lines(entry))
        list(searchable_texts(entry.event))


def _pack(path: Path, data: bytes) -> None:
    """A valid archive of hostile events. A line that starts with `B` is a blob; `$0` is the digest of the first one."""
    lines = data[:MAX_BYTES].split(b"\n")
    blobs = [(hashlib.sha256(each[1:]).hexdigest(), each[1:]) for each in lines if each[:1] == b"B"]
    events = b"\n".join(each for each in lines if each[:1] != b"B")
    for number, (digest, _) in enumerate(blobs[:10]):
        events = events.replace(b"$%d" % number, digest.encode())
    recorded = _recorded(events)
    bodies = [body for body, _ in _events(events)]
    raw = [
        RawEvent(session=each.session, seq=each.seq, at_ms=each.at_ms, hash=each.hash, body=body)
        for each, body in zip(recorded, bodies, strict=True)
    ]
    last = raw[-1].hash.hex() if raw else ""
    manifest = ArchiveManifest(session=SESSION, events=len(raw), last_hash=last, exported_ms=1)
    with path.open("wb") as file:
        pack(file, manifest, raw, dict(blobs).items())


async def _import(path: Path, home: Home) -> None:
    store = MemoryStore(clock=FakeClock())
    await import_archive(store, home, path, now_ms=1_700_000_000_000)


@lru_cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def _run(work: Coroutine[None, None, None]) -> None:
    _loop().run_until_complete(work)


def settle() -> None:
    """Let the event loop of the targets do what it has planned."""
    for _ in range(5):
        _run(asyncio.sleep(0))


async def _ask(provider: str, kind: str, body: bytes) -> None:
    model = _model(provider)
    _BODY[:] = kind, body
    reply = await model.ask(Prompt(system="", messages=(UserMessage(text="hi"),)), lambda _: None)
    msgspec.json.encode(reply)


_BODY = ["", b""]
"""The content type and the body of the next answer."""


def _respond(request: httpx2.Request) -> httpx2.Response:
    kind, body = _BODY
    assert isinstance(kind, str)
    assert isinstance(body, bytes)
    pieces = [body[at : at + 1000] for at in range(0, len(body), 1000)]

    async def stream() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return httpx2.Response(200, headers={"content-type": kind}, content=stream())


@lru_cache
def _model(provider: str) -> ProviderModel:
    settings = ModelSettings(max_attempts=1, max_reply_bytes=20_000)
    client = httpx2.AsyncClient(
        transport=httpx2.MockTransport(_respond),
        event_hooks={"response": [limit_lines(settings.max_reply_bytes)]},
        timeout=settings.timeout_seconds,
    )
    spec = parse_spec(PROVIDERS[provider].default_model or f"{provider}:any")
    return ProviderModel(
        spec,
        library=PROVIDERS[provider].build(spec.name, "http://127.0.0.1:1", "key", client),
        client=client,
        settings=settings,
        key="key",
        retry_policy=RetryPolicy(settings.timeout_seconds, settings.max_attempts),
    )
