"""The API of the web server: answers, rights, changes and sessions, in this process."""

import asyncio
import gzip
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from tests.cli.commands import Run
from tests.web.asgi import WebClient, web_client
from tests.web.http import Answer
from tests.web.sample_home import SampleHome, fill

from holdfast.app import Runtime
from holdfast.commands import ScriptedProcess, ScriptedSandboxes
from holdfast.core import Ok, SessionId, escape_json
from holdfast.core.events import EscalationAnswered, MessagePosted, TurnEnded
from holdfast.models import Reply, ScriptedModel, use
from holdfast.session import Session, Settings
from holdfast.web.api.devices import CodeBody, new_link
from holdfast.web.context import WebRequest


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("api")


@pytest.fixture(scope="module")
def filled(root: Path) -> SampleHome:
    """The sessions of a home that is filled once; each test gets a copy at the same place, which the sessions name."""
    shutil.rmtree(root / "user", ignore_errors=True)  # a test without this home may have come before
    sample = asyncio.run(fill(root / "user" / "holdfast", waiting=("a.txt", "b.txt")))
    (root / "user").rename(root / "template")
    return sample


@pytest.fixture
def tmp_path(root: Path) -> Path:
    """An empty folder, the same one for every test of the module."""
    folder = root / "user"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@pytest.fixture
def sample(tmp_path: Path, filled: SampleHome) -> SampleHome:
    shutil.copytree(tmp_path.parent / "template", tmp_path, symlinks=True, dirs_exist_ok=True)
    return filled


@pytest.fixture
async def client(tmp_path: Path, sample: SampleHome) -> AsyncIterator[WebClient]:
    async with web_client(tmp_path / "holdfast") as client:
        yield client


async def waiting(client: WebClient, session: str) -> dict[str, str]:
    """The id and digest of what waits in a session, as a page sends them back."""
    [call] = (await client.get(f"/api/waiting?session={session}")).data
    return {"id": call["escalation"]["id"], "digest": call["escalation"]["digest"]}


async def respond(client: WebClient, session: str, verdict: str, **more: str) -> Answer:
    """Answer what waits in a session, as it is shown."""
    shown = await waiting(client, session)
    body = {"verdict": verdict, "digest": shown["digest"], **more}
    return await client.post(f"/api/waiting/{session}/{shown['id']}", body)


async def forked(client: WebClient, folder: Path) -> tuple[Session, str]:
    """A session that wrote a file in a folder, closed, and a fork of it."""
    folder.mkdir()
    parent = await client.context.runtime.create(workspace=folder, policy="scratch", needs_model=False)
    await parent.execute("open('a.txt', 'w').write('one')")
    await parent.close()
    return parent, (await client.post(f"/api/sessions/{parent.id}/fork", {"turn": 1})).data["session"]


async def test_an_approval_is_recorded_with_its_transport(client: WebClient, sample: SampleHome) -> None:
    session = sample.waiting[0]
    shown = await waiting(client, session)
    path = f"/api/waiting/{session}/{shown['id']}"
    answer = await client.post(path, {"verdict": "approve", "digest": shown["digest"]})
    assert (answer.status, answer.data["delivery"]) == (200, "recorded")
    events = [each.event for each in await client.context.store.read(SessionId(session))]
    [recorded] = [each for each in events if isinstance(each, EscalationAnswered)]
    assert (recorded.response.verdict, recorded.transport) == ("approve", "web")
    again = await client.post(path, {"verdict": "approve", "digest": shown["digest"]})
    assert (again.status, again.data["code"]) == (409, "escalation-unknown")
    assert "does not wait" in again.data["text"]


@pytest.mark.promise("P09")
async def test_the_token_of_a_browser_is_neither_at_rest_nor_shown(
    client: WebClient, sample: SampleHome
) -> None:
    answers = [await respond(client, sample.waiting[0], "approve")]
    answers += [await client.get(f"/api/{name}") for name in ("waiting", "answered", "devices", "sessions")]
    answers += [await client.get("/api/nothing"), await client.post("/api/enter", {"code": client.token})]
    assert [each.status for each in answers[:5]] == [200] * 5
    secret = client.token.encode()
    assert [each for each in answers if secret in each.body] == []
    assert [
        path for path in client.context.home.root.rglob("*") if path.is_file() and secret in path.read_bytes()
    ] == []


@pytest.mark.promise("P19")
async def test_what_is_not_what_was_shown_is_not_approved(client: WebClient, sample: SampleHome) -> None:
    session = sample.waiting[0]
    shown = await waiting(client, session)
    answer = await client.post(
        f"/api/waiting/{session}/{shown['id']}", {"verdict": "approve", "digest": "0" * 64}
    )
    assert (answer.status, answer.data["text"]) == (409, "what you were shown is not what waits")
    other = await waiting(client, sample.waiting[1])
    answer = await client.post(
        f"/api/waiting/{session}/{other['id']}", {"verdict": "approve", "digest": other["digest"]}
    )
    assert answer.status == 409, "an id of another session is not found in this one"
    assert (await waiting(client, session)) == shown


async def test_a_denial_carries_its_reason_to_the_record(client: WebClient, sample: SampleHome) -> None:
    assert (await respond(client, sample.waiting[0], "deny", reason="not this one")).status == 200
    [first, *_] = (await client.get("/api/answered")).data
    assert (first["verdict"], first["reason"], first["transport"]) == ("deny", "not this one", "web")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"verdict": "approve"},
        {"verdict": "yes", "digest": "x"},
        {"verdict": "approve", "digest": 1},
        {"verdict": "approve", "digest": "x", "more": 1},
        {"verdict": "approve", "digest": "x", "scope": "forever"},
        [],
        None,
    ],
)
async def test_a_body_that_is_not_exactly_right_is_refused(
    client: WebClient, sample: SampleHome, body: object
) -> None:
    session = sample.waiting[0]
    shown = await waiting(client, session)
    assert (await client.post(f"/api/waiting/{session}/{shown['id']}", body)).status == 400
    assert (await waiting(client, session)) == shown


@pytest.mark.parametrize("scope", ["always", "times", "minutes"])
async def test_a_scope_without_its_amount_and_always_are_refused(
    client: WebClient, sample: SampleHome, scope: str
) -> None:
    session = sample.waiting[0]
    shown = await waiting(client, session)
    body = {"verdict": "approve", "digest": shown["digest"], "scope": scope}
    assert (await client.post(f"/api/waiting/{session}/{shown['id']}", body)).status == 400
    assert (await waiting(client, session)) == shown


async def test_an_approval_for_always_saves_the_rule_that_was_shown(
    tmp_path: Path, client: WebClient, sample: SampleHome
) -> None:
    first, second = sample.waiting
    shown = await waiting(client, first)
    path = f"/api/waiting/{first}/{shown['id']}"
    rule = (await client.get(f"{path}/rule?scope=always&offer=2")).data["text"]
    assert rule.startswith("world.write")
    assert rule.endswith("in every session")
    body = {"verdict": "approve", "digest": shown["digest"], "scope": "always", "offer": 2}
    for wrong in ("", rule.replace("every", "this")):
        refused = await client.post(path, body | {"rule": wrong})
        assert (refused.status, refused.data["text"]) == (
            409,
            "what you were shown is not what would be saved",
        )
    assert (await client.as_device("answer").post(path, body | {"rule": rule})).status == 400
    assert (await client.post(path, body | {"rule": rule, "offer": 9})).status == 400
    assert (await waiting(client, first)) == shown
    assert (await client.post(path, body | {"rule": rule})).status == 200
    [saved] = (await client.get(f"/api/sessions/{second}/grants")).data
    assert saved["text"] == rule, "it holds in every session"


async def test_the_process_that_holds_a_session_saves_an_approval_for_always(
    tmp_path: Path, client: WebClient, sample: SampleHome
) -> None:
    holder = await Runtime.start(home=tmp_path / "holdfast", settings=Settings(), servers=())
    try:
        await holder.resume(sample.waiting[0], needs_model=False)
        shown = await waiting(client, sample.waiting[0])
        path = f"/api/waiting/{sample.waiting[0]}/{shown['id']}"
        rule = (await client.get(f"{path}/rule?scope=always&offer=1")).data["text"]
        body = {
            "verdict": "approve",
            "digest": shown["digest"],
            "scope": "always",
            "offer": 1,
            "rule": rule,
        }
        done = await client.post(path, body)
        assert (done.status, done.data["delivery"]) == (200, "accepted")
        saved: list[dict[str, str]] = []
        async with asyncio.timeout(60):
            with client.context.store.watch() as watch:
                while not saved:  # it is saved after the answer is on record
                    await watch.changed()
                    saved = (await client.get(f"/api/sessions/{sample.waiting[1]}/grants")).data
        assert [each["text"] for each in saved] == [rule]
    finally:
        await holder.close()


@pytest.mark.parametrize("query", ["", "scope=once", "scope=forever", "scope=times", "scope=session&offer=9"])
async def test_a_rule_that_nobody_can_save_is_not_shown(
    client: WebClient, sample: SampleHome, query: str
) -> None:
    shown = await waiting(client, sample.waiting[0])
    assert (await client.get(f"/api/waiting/{sample.waiting[0]}/{shown['id']}/rule?{query}")).status == 400


async def test_each_right_opens_what_it_says(client: WebClient, sample: SampleHome) -> None:
    looking, answering = client.as_device("look"), client.as_device("answer")
    session = sample.waiting[0]
    shown = await waiting(looking, session)
    path = f"/api/waiting/{session}/{shown['id']}"
    refused = await looking.post(path, {"verdict": "deny", "digest": shown["digest"]})
    assert (refused.status, refused.data["code"]) == (403, "not-allowed")
    saved = {"verdict": "approve", "digest": shown["digest"], "scope": "session"}
    assert (await answering.post(path, saved)).status == 400
    for act, body in (
        ("messages", {"text": "x"}),
        ("cancel", {}),
        ("commit", {"shown": {}}),
        ("reject", {"paths": []}),
    ):
        assert (await answering.post(f"/api/sessions/{session}/{act}", body)).status == 403, act
    assert (await answering.post("/api/sessions", {"text": "x"})).status == 403
    assert (await answering.post("/api/devices/link", {"right": "operate"})).status == 403
    assert (await waiting(client, session)) == shown
    assert (await answering.post(path, {"verdict": "deny", "digest": shown["digest"]})).status == 200


async def test_an_ended_device_is_out_at_once(client: WebClient) -> None:
    other = client.as_device("operate")
    listed = (await other.get("/api/devices")).data
    assert (await client.post(f"/api/devices/{listed['own']}/end", {})).status == 200
    assert (await other.get("/api/devices")).status == 401


@pytest.mark.promise("P19")
async def test_changes_are_committed_only_as_shown(client: WebClient, sample: SampleHome) -> None:
    path = f"/api/sessions/{sample.staged}"
    listed = (await client.get(f"{path}/changes")).data
    assert [each["path"] for each in listed] == ["data.csv", "report.md"]
    stale = {each["path"]: "0" * 64 for each in listed}
    refused = await client.post(f"{path}/commit", {"shown": stale})
    assert (refused.status, refused.data["code"]) == (409, "commit-conflict")
    assert (await client.post(f"{path}/commit", {"shown": {}})).status == 409
    one = {"data.csv": next(each["digest"] for each in listed if each["path"] == "data.csv")}
    assert (await client.post(f"{path}/commit", {"shown": one})).status == 200
    assert [each["path"] for each in (await client.get(f"{path}/changes")).data] == ["report.md"]
    assert (await client.post(f"{path}/reject", {"paths": ["report.md"]})).status == 200
    assert (await client.get(f"{path}/changes")).data == []


async def test_a_session_that_another_process_holds_is_seen_and_acted_on(
    tmp_path: Path, client: WebClient, sample: SampleHome
) -> None:
    holder = await Runtime.start(home=tmp_path / "holdfast", settings=Settings(), servers=())
    try:
        session = await holder.resume(sample.staged, needs_model=False)
        view = (await client.get(f"/api/sessions/{sample.staged}")).data
        assert view["holder"]["pid"] > 0
        assert view["is_hosted"] is False
        path = f"/api/sessions/{sample.staged}"
        shown = {each["path"]: each["digest"] for each in (await client.get(f"{path}/changes")).data}
        done = await client.post(f"{path}/commit", {"shown": shown})
        assert (done.status, done.data) == (200, {"by_holder": True})
        assert session.proposals() == ()
        refused = await client.post(f"{path}/messages", {"text": "hello"})
        assert (refused.status, refused.data["code"]) == (409, "session-not-ready")
        assert "takes no messages" in refused.data["text"]
        plan = await client.get(f"{path}/rewind?turn=0")
        assert (plan.status, [each["path"] for each in plan.data["changes"]]) == (
            200,
            ["data.csv", "report.md"],
        )
        (tmp_path / "holdfast" / "sessions" / sample.staged / "workspace" / "own.txt").write_text("since")
        stale = await client.post(f"{path}/rewind", {"turn": 0, "shown": plan.data["digest"]})
        assert (stale.status, stale.data["code"]) == (409, "session-not-ready")
        assert "not what was shown; nothing was rewound" in stale.data["text"]
        assert session.workspace.exists("report.md")
        assert session.workspace.exists("own.txt")
        plan = await client.get(f"{path}/rewind?turn=0")
        done = await client.post(f"{path}/rewind", {"turn": 0, "shown": plan.data["digest"]})
        assert done.data == {"by_holder": True}
        assert not session.workspace.exists("report.md")
    finally:
        await holder.close()


async def test_a_rewind_is_done_only_as_shown(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    async with web_client(tmp_path / "holdfast") as client:
        session = await client.context.runtime.create(workspace=folder, policy="scratch", needs_model=False)
        await session.execute("open('a.txt', 'w').write('one')")
        await session.close()
        path = f"/api/sessions/{session.id}/rewind"
        shown = (await client.get(f"{path}?turn=0")).data
        assert [each["path"] for each in shown["changes"]] == ["a.txt"]
        assert (await client.post(path, {"turn": 0})).status == 400, "it says what was shown"
        assert (await client.post(path, {"turn": 0, "shown": ""})).status == 400
        (folder / "a.txt").write_text("by hand, after the plan was shown")
        stale = await client.post(path, {"turn": 0, "shown": shown["digest"]})
        assert (stale.status, stale.data["code"]) == (409, "commit-conflict")
        assert "not what was shown; nothing was rewound" in stale.data["text"]
        assert (folder / "a.txt").exists()
        other = (await client.get(f"{path}?turn=1")).data
        assert (await client.post(path, {"turn": 0, "shown": other["digest"]})).status == 409
        shown = (await client.get(f"{path}?turn=0")).data
        assert (await client.post(path, {"turn": 0, "shown": shown["digest"]})).status == 200
        assert not (folder / "a.txt").exists()


async def test_a_session_started_here_works_without_a_page(tmp_path: Path, client: WebClient) -> None:
    script = tmp_path / "script.json"
    script.write_text('["Hello.", "Again."]')
    body = {"text": "Say hello", "model": f"scripted:{script}", "policy": "ask-always"}
    started = await client.post("/api/sessions", body)
    assert started.status == 200, started
    session = started.data["session"]
    await until_turns(client, session, 1)
    assert (await client.post(f"/api/sessions/{session}/messages", {"text": "And again"})).status == 200
    await until_turns(client, session, 2)
    talk = (await client.get(f"/api/sessions/{session}/conversation")).data
    assert [each["text"] for each in talk["items"] if each["kind"] == "reply"] == ["Hello.", "Again."]
    events = [each.event for each in await client.context.store.read(session)]
    assert [each.transport for each in events if isinstance(each, MessagePosted)] == ["web", "web"]


@pytest.mark.parametrize("verdict", ["approve", "deny"])
async def test_an_answer_continues_a_session_without_a_model_that_nobody_holds(
    tmp_path: Path, verdict: str
) -> None:
    sample = await fill(tmp_path / "holdfast", waiting=("target.txt",))
    async with web_client(tmp_path / "holdfast") as client:
        assert (await respond(client, sample.waiting[0], verdict)).data["delivery"] == "recorded"
        await until_turns(client, sample.waiting[0], 1)
    assert (tmp_path / "shop" / "target.txt").exists() is (verdict == "approve")


async def test_an_answer_says_why_a_session_does_not_go_on(tmp_path: Path) -> None:
    """Its model is not to be had here: the turn stays open for a process that has it, instead of failing."""
    home = tmp_path / "holdfast"
    runtime = await Runtime.start(home=home, settings=Settings(), servers=())
    script: list[Reply | str] = [use("execute_code", {"code": "open('a.txt', 'w').write('x')"}), "Done."]
    session = await runtime.create(name="no-key", policy="ask-always", model=ScriptedModel(script))
    await session.send("write it")
    await runtime.close()
    async with web_client(home) as client:
        given = (await respond(client, session.id, "approve")).data
        assert given["delivery"] == "recorded"
        assert given["problem"].startswith("no process continues the session: ")
        assert given["problem"].endswith("; continue it with: holdfast -r no-key")
        view = (await client.get(f"/api/sessions/{session.id}")).data
        assert (view["summary"]["activity"], view["holder"]) == ("processing", None)
        events = [each.event for each in await client.context.store.read(session.id)]
        assert not any(isinstance(each, TurnEnded) for each in events)
    runtime = await Runtime.start(home=home, settings=Settings(), servers=())
    try:
        resumed = await runtime.resume("no-key", model=ScriptedModel(script))
        assert isinstance(await resumed.advance(), Ok)
        assert (home / "sessions" / session.id / "workspace" / "a.txt").exists()
    finally:
        await runtime.close()


async def test_a_device_that_may_only_answer_is_told_that_nobody_continues(
    client: WebClient, sample: SampleHome
) -> None:
    given = await respond(client.as_device("answer"), sample.waiting[0], "approve")
    assert "this device may only answer" in given.data["problem"]


async def until_turns(client: WebClient, session: str, number: int) -> None:
    """Wait until a number of turns has ended."""
    async with asyncio.timeout(60):
        with client.context.store.watch() as watch:
            while True:
                events = [each.event for each in await client.context.store.read(SessionId(session))]
                if sum(isinstance(each, TurnEnded) for each in events) >= number:
                    return
                await watch.changed()


async def test_a_page_that_opens_in_the_middle_of_output_shows_all_of_it(
    client: WebClient, sample: SampleHome
) -> None:
    feed = client.context.feed
    path = f"/api/sessions/{sample.talk}"
    assert (await client.get(path)).data["live"] == {}
    feed.send_text(sample.talk, "output", "one\n")
    feed.send_text(sample.talk, "output", "two\n")
    assert (await client.get(path)).data["live"] == {"output": {"text": "one\ntwo\n", "end": 8}}
    feed.send_text(sample.talk, "output", "x" * 30_000)
    live = (await client.get(path)).data["live"]["output"]
    assert (len(live["text"]), live["end"]) == (20_000, 30_008)
    opened = await client.context.runtime.resume(sample.talk, needs_model=False)
    await opened.execute("print(1)")
    await opened.close()
    async with asyncio.timeout(60):
        with client.context.store.watch() as watch:
            while (await client.get(path)).data["live"]["output"]["text"]:
                await watch.changed()
    feed.send_text(sample.talk, "output", "new")
    assert (await client.get(path)).data["live"] == {"output": {"text": "new", "end": 30_011}}


async def test_a_request_that_is_too_large_or_not_json_is_refused(client: WebClient) -> None:
    assert (await client.send("POST", "/api/sessions", b"x" * (1 << 20) + b"xx")).status == 413
    assert (await client.send("POST", "/api/sessions", b"{")).status == 400
    assert (await client.send("POST", "/api/sessions", b"\xff")).status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/static/../guard.py",
        "/static/..%2fguard.py",
        "/static/vendor/../../guard.py",
        "/static/",
        "/static",
        "/guard.py",
        "/static/vendor/README.md",
        "/static/x.js",
        "/static//etc/passwd",
        "/api/nothing",
        "/api/sessions/../devices/x",
    ],
)
async def test_there_is_nothing_at_other_paths(client: WebClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.status == 404
    assert b"import" not in answer.body


async def test_only_files_of_the_page_are_compressed(client: WebClient) -> None:
    """What the API answers holds what strangers wrote beside what is secret, so its length must not depend on both."""
    plain = await client.get("/static/app.js")
    assert "content-encoding" not in plain.headers
    for given, is_packed in (
        (b"gzip, deflate, br", True),
        (b"br, GZIP", True),
        (b"gzip;q=0", False),
        (b"br", False),
    ):
        answer = await client.send("GET", "/static/app.js", b"", (b"accept-encoding", given))
        assert (answer.headers.get("content-encoding") == "gzip") is is_packed, given
        assert (gzip.decompress(answer.body) if is_packed else answer.body) == plain.body
        assert answer.headers["vary"] == "accept-encoding"
    asked = await client.send("GET", "/api/waiting", b"", (b"accept-encoding", b"gzip"))
    assert "content-encoding" not in asked.headers
    head = await client.send("HEAD", "/static/app.js", b"", (b"accept-encoding", b"gzip"))
    assert head.body == b""


async def test_every_answer_has_the_headers_of_the_guard(client: WebClient) -> None:
    for path in ("/", "/static/app.js", "/api/waiting", "/api/nothing", "/nothing"):
        headers = (await client.get(path)).headers
        assert "trusted-types 'none'" in headers["content-security-policy"], path
        assert headers["cache-control"] == "no-store"
        assert headers["x-frame-options"] == "DENY"
        assert "set-cookie" not in headers
        assert not any(name.startswith("access-control") for name in headers)


SAME_BYTES = (
    ("sessions --json", "/api/sessions"),
    ("timeline tidy-notes --json", "/api/sessions/{talk}/timeline"),
    ("audit tidy-notes --json", "/api/sessions/{talk}/audit"),
    ("usage --json", "/api/usage"),
    ("waiting --json", "/api/waiting"),
    ("search milk --json", "/api/search?q=milk"),
    ("rewind tidy-notes --json", "/api/sessions/{talk}/points"),
    ("rewind report --json", "/api/sessions/{staged}/points"),
    ("rewind tidy-notes --to 0 --dry-run --json", "/api/sessions/{talk}/rewind?turn=0"),
    ("budget show tidy-notes --json", "/api/sessions/{talk}/budget"),
    ("grants --session tidy-notes --json", "/api/sessions/{talk}/grants"),
)


def test_the_command_line_and_the_api_give_the_same_bytes(
    tmp_path: Path, sample: SampleHome, run: Run
) -> None:
    """Those of merge are compared elsewhere. The doctor measures again with the same function. docs/guides/web.md names the rest."""

    async def ask() -> list[bytes]:
        async with web_client(tmp_path / "holdfast") as client:
            paths = [path.format(talk=sample.talk, staged=sample.staged) for _, path in SAME_BYTES]
            return [(await client.get(path)).body for path in paths]

    printed = [run(*words.split()).out for words, _ in SAME_BYTES]
    for (words, path), body, expected in zip(SAME_BYTES, asyncio.run(ask()), printed, strict=True):
        if path == "/api/sessions":  # a page, because a home may have a hundred thousand
            body = msgspec.json.encode(msgspec.json.decode(body)["sessions"])
        assert escape_json(msgspec.json.format(body, indent=2).decode()) + "\n" == expected, words


async def test_hunks_are_committed_one_by_one(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    lines = [f"line {number}\n" for number in range(40)]
    (folder / "a.txt").write_text("".join(lines))
    changed = ["first\n", *lines[1:-1], "last\n"]
    runtime = await Runtime.start(home=tmp_path / "holdfast", settings=Settings(), servers=())
    try:
        session = await runtime.create(workspace=folder, policy="project", needs_model=False)
        await session.execute(f"open('a.txt', 'w').write({''.join(changed)!r})")
    finally:
        await runtime.close()
    async with web_client(tmp_path / "holdfast") as client:
        base = f"/api/sessions/{session.id}"
        [shown] = (await client.get(f"{base}/changes")).data
        assert shown["proposal"]["diff"].count("\n@@ ") == 2
        stale = {"decisions": [{"path": "a.txt", "shown": "0" * 64, "accepted": [1]}]}
        refused = await client.post(f"{base}/hunks", stale)
        assert (refused.status, refused.data["code"]) == (409, "commit-conflict")
        assert (await client.post(f"{base}/hunks", {"decisions": []})).status == 400
        body = {"decisions": [{"path": "a.txt", "shown": shown["digest"], "accepted": [1], "rejected": [2]}]}
        assert (await client.post(f"{base}/hunks", body)).status == 200
        assert (folder / "a.txt").read_text() == "".join(["first\n", *lines[1:]])
        assert (await client.get(f"{base}/changes")).data == []


async def test_a_commit_waits_for_its_check(tmp_path: Path) -> None:
    async def check(process: ScriptedProcess) -> int:
        process.print("2 tests failed\n" if "fail" in process.argv[2] else "fine\n")
        return 1 if "fail" in process.argv[2] else 0

    sandboxes = ScriptedSandboxes({"sh": check})
    async with web_client(tmp_path / "holdfast", sandboxes=sandboxes) as client:
        session = await client.context.runtime.create(policy="project", needs_model=False)
        await session.execute("open('a.txt', 'w').write('x')\nopen('b.txt', 'w').write('y')")
        await session.close()
        base = f"/api/sessions/{session.id}"
        shown = {each["path"]: each["digest"] for each in (await client.get(f"{base}/changes")).data}
        failed = await client.post(f"{base}/commit", {"shown": shown, "check": "fail"})
        assert (failed.status, failed.data["text"]) == (409, "nothing was committed: the check exited with 1")
        assert "2 tests failed" in failed.data["hint"]
        part = await client.post(f"{base}/commit", {"shown": {"a.txt": shown["a.txt"]}, "check": "ok"})
        assert part.status == 409
        assert "all changes" in part.data["text"]
        assert len((await client.get(f"{base}/changes")).data) == 2
        done = await client.post(f"{base}/commit", {"shown": shown, "check": "ok"})
        assert (done.status, done.data["check"]["code"]) == (200, 0)
        assert (await client.get(f"{base}/changes")).data == []


async def test_a_fork_is_merged_if_it_is_what_was_shown(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "project"
    async with web_client(tmp_path / "holdfast") as client:
        runtime = client.context.runtime
        parent, fork = await forked(client, folder)
        assert (await client.get(f"/api/sessions/{parent.id}/merge")).status == 400, "it is not a fork"
        opened = await runtime.resume(fork, needs_model=False)
        await opened.execute("open('a.txt', 'w').write('two')")
        await opened.close()
        seen = await client.get(f"/api/sessions/{fork}/merge")
        plan = seen.data
        assert [each["path"] for each in plan["proposals"]] == ["a.txt"]
        printed = (await asyncio.to_thread(run, "merge", fork, "--dry-run", "--json")).out
        assert msgspec.json.format(seen.body, indent=2).decode() + "\n" == printed
        stale = await client.post(f"/api/sessions/{fork}/merge", {"shown": "0" * 64})
        assert (stale.status, (folder / "a.txt").read_text()) == (409, "one")
        assert (await client.post(f"/api/sessions/{fork}/merge", {"shown": plan["digest"]})).status == 200
        assert (folder / "a.txt").read_text() == "two"


@pytest.mark.parametrize("held", ["the fork", "its parent", "both"])
async def test_the_merge_of_a_fork_that_another_process_holds_is_seen(tmp_path: Path, held: str) -> None:
    folder = tmp_path / "project"
    async with web_client(tmp_path / "holdfast") as client:
        runtime = client.context.runtime
        parent, fork = await forked(client, folder)
        opened = await runtime.resume(fork, needs_model=False)
        await opened.execute("open('a.txt', 'w').write('two')\nopen('b.txt', 'w').write('new')")
        await opened.close()
        free = (await client.get(f"/api/sessions/{fork}/merge")).data
        assert [each["path"] for each in free["proposals"]] == ["a.txt", "b.txt"]
        holder = await Runtime.start(home=tmp_path / "holdfast", settings=Settings(), servers=())
        try:
            for id in {"the fork": (fork,), "its parent": (parent.id,), "both": (fork, parent.id)}[held]:
                await holder.resume(id, needs_model=False)
            seen = await client.get(f"/api/sessions/{fork}/merge")
            assert (seen.status, seen.data) == (200, free)
            refused = await client.post(f"/api/sessions/{fork}/merge", {"shown": seen.data["digest"]})
            assert (refused.status, refused.data["code"]) == (409, "session-held")
            assert (folder / "a.txt").read_text() == "one"
        finally:
            await holder.close()
        done = await client.post(f"/api/sessions/{fork}/merge", {"shown": seen.data["digest"]})
        assert (done.status, (folder / "a.txt").read_text()) == (200, "two")


async def test_files_are_read_with_what_is_staged_and_nothing_outside_is(
    client: WebClient, sample: SampleHome
) -> None:
    base = f"/api/sessions/{sample.staged}"
    found = (await client.get(f"{base}/files")).data
    assert [(each["path"], each["is_staged"]) for each in found["files"]] == [
        ("data.csv", True),
        ("report.md", True),
    ]
    text = (await client.get(f"{base}/file?path=data.csv")).data
    assert (text["kind"], text["text"], text["is_whole"]) == ("text", "a,b\n1,2\n", True)
    for path in ("../../../etc/passwd", "/etc/passwd", "..%2f..%2fholdfast.db", "", ".", "absent.txt"):
        assert (await client.get(f"{base}/file?path={path}")).status in (400, 404), path


async def test_a_policy_shows_its_rules_and_explains_a_call(client: WebClient, sample: SampleHome) -> None:
    assert "project" in (await client.get("/api/policies")).data["names"]
    policy = (await client.get("/api/policies/ask-always")).data
    assert all(":" in rule["source"] for rule in policy["rules"])
    rules = {
        each["name"]: each["tests"] for each in (await client.get("/api/policies/project")).data["rules"]
    }
    assert rules["no-changes-outside"] == ["write-path, delete-path: outside the workspace"]
    assert "git push, npm|pnpm|yarn|bun publish" in rules["no-publishing"][0]
    call = '{"operation": "world.write", "arguments": {"path": "a.txt", "content": "x"}}'
    explain = f"/api/policies/ask-always/explain?call={quote(call)}"
    explained = (await client.as_device("look").get(explain)).data
    assert explained["verdict"] == "escalate"
    assert any("ask-always" in line for line in explained["lines"])
    assert (await client.get("/api/policies/ask-always/explain?call={")).status == 400
    for name in ("..%2f..%2fetc%2fpasswd", "absent", "a.yaml"):
        assert (await client.get(f"/api/policies/{name}")).status in (400, 404), name
    past = (await client.get("/api/policies/scratch/backtest")).data
    assert (past["calls"], past["changed"], past["looser"]) == (5, 5, 5)
    rules = (await client.get("/api/policies/ask-always/suggestions")).data
    assert (rules["prompts"], rules["rules"]) == (0, []), "the only answer was a denial"


async def test_teams_show_their_pairs_and_figures(client: WebClient, sample: SampleHome) -> None:
    view = (await client.get("/api/teams")).data
    assert view["problem"] == ""
    assert [each["name"] for each in view["teams"]] == ["backend", "web"]
    pairs = {each["pair"]: each for each in view["overview"]["pairs"]}
    assert pairs["external -> web"]["in_flight"] == "question 1"
    assert pairs["external -> backend"]["last_outcome"] == "ok"
    stats = view["overview"]["stats"]
    assert (stats["messages"], stats["messages_a_pair"], stats["tokens_a_pair"]) == (4, 2.0, 30.0)
    assert stats["lifetimes"]["hour"] == 2
    assert [each["pair"] for each in stats["pairs"]] == ["external -> backend", "external -> web"]


async def test_an_edited_call_is_judged_again_and_made(client: WebClient, sample: SampleHome) -> None:
    session = sample.waiting[0]
    shown = await waiting(client, session)
    path = f"/api/waiting/{session}/{shown['id']}"
    edited = {"path": "/workspace/edited.txt", "content": "mine"}
    body = {"verdict": "approve", "digest": shown["digest"], "arguments": edited}
    assert (await client.as_device("answer").post(path, body)).status == 400
    assert (await client.post(path, body | {"scope": "session"})).status == 400
    assert (await client.post(path, body | {"verdict": "deny"})).status == 400
    assert (await client.post(path, body)).status == 200
    events = [each.event for each in await client.context.store.read(SessionId(session))]
    [recorded] = [each for each in events if isinstance(each, EscalationAnswered)]
    assert recorded.response.arguments == edited


async def test_a_late_answer_is_refused_with_words(client: WebClient, sample: SampleHome) -> None:
    session = sample.waiting[0]
    shown = await waiting(client, session)
    opened = await client.context.runtime.resume(session, needs_model=False)
    await opened.cancel()
    await opened.close()
    late = await client.post(
        f"/api/waiting/{session}/{shown['id']}", {"verdict": "approve", "digest": shown["digest"]}
    )
    assert (late.status, late.data["code"]) == (409, "escalation-unknown")
    assert "it expired" in late.data["text"]


async def test_only_a_link_that_a_phone_reaches_is_a_qr_code(client: WebClient) -> None:
    made = (await client.post("/api/devices/link", {"right": "answer"})).data
    assert made["qr"] is None
    context = replace(client.context, origin="https://box.example")
    request = WebRequest(context=context, device=context.devices.all()[0], path={}, query={}, body=CodeBody())
    link = await new_link(request)
    assert link.qr is not None
    assert link.url.startswith("https://box.example/#enter=")
