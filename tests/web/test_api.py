"""The API of the web server: answers, rights, changes and sessions, in this process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.cli.commands import Run
from tests.web.asgi import WebClient, web_client
from tests.web.sample_home import SampleHome, fill

from holdfast.app import Runtime
from holdfast.core import SessionId, escape_json
from holdfast.core.events import EscalationAnswered, MessagePosted, TurnEnded
from holdfast.session import Settings


@pytest.fixture
async def sample(tmp_path: Path) -> SampleHome:
    return await fill(tmp_path / "holdfast", waiting=("a.txt", "b.txt"))


@pytest.fixture
async def client(tmp_path: Path, sample: SampleHome) -> AsyncIterator[WebClient]:
    async with web_client(tmp_path / "holdfast") as client:
        yield client


async def waiting(client: WebClient, session: str) -> dict[str, str]:
    """The id and digest of what waits in a session, as a page sends them back."""
    [call] = (await client.get(f"/api/waiting?session={session}")).data
    return {"id": call["escalation"]["id"], "digest": call["escalation"]["digest"]}


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
    session = sample.waiting[0]
    shown = await waiting(client, session)
    body = {"verdict": "deny", "digest": shown["digest"], "reason": "not this one"}
    assert (await client.post(f"/api/waiting/{session}/{shown['id']}", body)).status == 200
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
    finally:
        await holder.close()


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


async def until_turns(client: WebClient, session: str, number: int) -> None:
    """Wait until a number of turns has ended."""
    async with asyncio.timeout(60):
        with client.context.store.watch() as watch:
            while True:
                events = [each.event for each in await client.context.store.read(SessionId(session))]
                if sum(isinstance(each, TurnEnded) for each in events) >= number:
                    return
                await watch.changed()


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


async def test_every_answer_has_the_headers_of_the_guard(client: WebClient) -> None:
    for path in ("/", "/static/app.js", "/api/waiting", "/api/nothing", "/nothing"):
        headers = (await client.get(path)).headers
        assert "trusted-types 'none'" in headers["content-security-policy"], path
        assert headers["cache-control"] == "no-store"
        assert headers["x-frame-options"] == "DENY"
        assert "set-cookie" not in headers
        assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.usefixtures("sample")
@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("sessions", "--json"), None),
        (("timeline", "tidy-notes", "--json"), "/api/sessions/{talk}/timeline"),
        (("audit", "tidy-notes", "--json"), "/api/sessions/{talk}/audit"),
        (("usage", "--json"), "/api/usage"),
        (("waiting", "--json"), "/api/waiting"),
    ],
)
def test_the_command_line_and_the_api_give_the_same_bytes(
    tmp_path: Path,
    sample: SampleHome,
    run: Run,
    words: tuple[str, ...],
    path: str | None,
) -> None:
    async def ask() -> bytes:
        async with web_client(tmp_path / "holdfast") as client:
            return (await client.get((path or "/api/sessions").format(talk=sample.talk))).body

    printed = run(*words).out
    body = asyncio.run(ask())
    if path is None:  # a page, because a home may have a hundred thousand
        body = msgspec.json.encode(msgspec.json.decode(body)["sessions"])
    assert escape_json(msgspec.json.format(body, indent=2).decode()) + "\n" == printed
