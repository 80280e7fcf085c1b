"""API keys: who may do what over the API of `holdfast serve`, and that no route reaches another tenant."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.store.sample_events import opened, said, turn
from tests.support.postgres import Databases, of_tenant
from tests.web.asgi import WebClient, web_client

from holdfast.core import Needs, SessionId
from holdfast.core.events import BudgetRaised, EscalationAnswered, MessagePosted, SessionOpened
from holdfast.models import Reply, ScriptedModel, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session
from holdfast.store import Right, WorkStore, add_tenant, create_api_key
from holdfast.web.application import ROUTES, WebApplication
from holdfast.worker import MemoryDispatch, Worker, install_dispatch

ASK = FixedPolicy(default="allow", verdicts={"world.write": "escalate"})
SECRET = "xylophone"
THEIRS = SessionId("the-secret-session")


@dataclass(frozen=True)
class Servers:
    """The API of two tenants."""

    theirs: WebClient
    ours: WebClient

    async def with_key(self, who: str, right: Right, *, at: WebClient | None = None) -> "Program":
        store = (at or self.theirs).context.store
        assert isinstance(store, WorkStore)
        _, text = await create_api_key(store, who, right)
        return Program(self.theirs.app, self.theirs.context, text)


class Program(WebClient):
    """A program that sends a key, and nothing that only browsers send."""

    def scope(self, method: str, path: str, *more: tuple[bytes, bytes]) -> MutableMapping[str, Any]:
        scope = super().scope(method, path)
        browsers = (b"origin", b"sec-fetch-site")
        scope["headers"] = [header for header in scope["headers"] if header[0] not in browsers] + [*more]
        return scope

    def to(self, app: WebApplication) -> "Program":
        """The same program at another server."""
        return Program(app, self.context, self.token)


@pytest.fixture
async def servers(postgres_databases: Databases, tmp_path: Path) -> AsyncIterator[Servers]:
    url = await postgres_databases.take()
    async with AsyncExitStack() as stack:
        stack.callback(postgres_databases.give_back, url)
        await install_dispatch(url)
        await add_tenant(url, "ours")
        theirs = await stack.enter_async_context(web_client(tmp_path / "theirs", store_url=url))
        ours = await stack.enter_async_context(
            web_client(tmp_path / "ours", store_url=of_tenant(url, "ours"))
        )
        yield Servers(theirs, ours)


async def test_a_key_allows_what_its_right_says_until_it_is_revoked(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.services.answer.HOLDER_SECONDS", 0.01)
    runtime = servers.theirs.context.runtime
    script: list[Reply | str] = [use("world__write", {"path": "a.txt", "content": "one"}), "done"]
    session = await runtime.create(model=ScriptedModel(script), policy=ASK)
    assert isinstance(await session.send("write"), Needs)
    (escalation,) = session.escalations()
    looker = await servers.with_key("visitor", "look")
    answerer = await servers.with_key("alice", "answer")
    operator = await servers.with_key("build-server", "operate")
    path, body = (
        f"/api/waiting/{session.id}/{escalation.id}",
        {"verdict": "deny", "digest": escalation.digest},
    )
    assert [each["session"] for each in (await looker.get("/api/waiting")).data] == [session.id]
    refused = await looker.post(path, body)
    assert refused.status == 403
    assert "--right answer" in refused.data["hint"], "a program has no browser"
    assert (await answerer.post(f"/api/sessions/{session.id}/messages", {"text": "more"})).status == 403
    assert (await answerer.post(path, {**body, "scope": "session"})).status == 400, "single calls only"
    assert (await answerer.post(path, body)).status == 200
    async with asyncio.timeout(60):
        while session.escalations():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    (answered,) = [e.event for e in session.recorded if isinstance(e.event, EscalationAnswered)]
    assert answered.principal == "person:alice", "the record names the owner of the key"
    assert (await operator.get("/api/sessions")).status == 200
    assert (await operator.post("/api/devices/link", {"right": "operate"})).status == 400, (
        "a browser would outlive the key"
    )
    store = servers.theirs.context.keys
    assert store is not None
    for key in await store.api_keys():
        await store.remove_api_key(key.id)
    for program in (looker, answerer, operator):
        assert (await program.get("/api/waiting")).status == 401
    await session.close()


async def test_what_a_key_sends_is_recorded_with_its_owner(servers: Servers) -> None:
    context, program = servers.theirs.context, await servers.with_key("build-server", "operate")
    started = await program.post("/api/sessions", {"text": "hello"})
    session = SessionId(started.data["session"])
    assert (await program.post(f"/api/sessions/{session}/budget", {"added": "calls=7"})).status == 200
    store, runtime = context.store, context.runtime
    assert isinstance(store, WorkStore)
    assert runtime.posted_requests is not None

    async def resume(session: SessionId) -> Session:
        return await runtime.resume(session, model=ScriptedModel(["done"]))

    worker = Worker(store=store, dispatch=MemoryDispatch(), resume=resume, requests=runtime.posted_requests)
    await worker.handle(session)
    events = [entry.event for entry in await store.read(session)]
    kinds = (SessionOpened, MessagePosted, BudgetRaised)
    found = {type(each): each.principal for each in events if isinstance(each, kinds)}
    assert found == dict.fromkeys(kinds, "person:build-server")


async def test_an_invalid_key_is_refused_and_named(servers: Servers) -> None:
    good = await servers.with_key("alice", "operate")
    assert (await good.get("/api/sessions")).status == 200
    for wrong in ("hf_", good.token[:-1], f"{good.token}x", "hf_\u00e9_x", "hf_0123456789_"):
        program = Program(good.app, good.context, wrong)
        for refused in (await program.get("/api/sessions"), await program.post("/api/devices/link", {})):
            assert refused.status == 401
            assert "API key is not valid" in refused.data["text"], "a program never opened a page"
    without = Program(good.app, good.context, "")
    assert (await without.get("/api/sessions")).status == 401
    assert (await without.post("/api/devices/link", {})).status == 403


async def test_a_page_of_another_site_cannot_use_a_key(servers: Servers) -> None:
    program = await servers.with_key("alice", "operate")
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    for header in ((b"origin", b"https://evil.example"), (b"sec-fetch-site", b"cross-site")):
        sent.clear()
        await program.app(program.scope("POST", "/api/devices/link", header), receive, send)
        assert sent[0]["status"] == 403


async def test_a_stream_ends_when_its_key_is_revoked(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.web.application.RECHECK_MS", 0)
    monkeypatch.setattr("holdfast.web.event_feed.ALIVE_SECONDS", 0.05)
    program = await servers.with_key("alice", "look")
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    reading = asyncio.create_task(program.app(program.scope("GET", "/api/stream"), receive, send))
    async with asyncio.timeout(60):
        while len(sent) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        store = servers.theirs.context.keys
        assert store is not None
        for key in await store.api_keys():
            await store.remove_api_key(key.id)
        await reading
    assert sent[-1].get("more_body") is None


async def test_no_route_reaches_another_tenant(servers: Servers) -> None:
    store = servers.theirs.context.store
    journal = await store.create(opened(name="secret-name"), session=THEIRS)
    await journal.append(*turn(1), said(2, SECRET))
    await journal.release()
    assert SECRET in (await servers.theirs.get(f"/api/search?q={SECRET}")).body.decode()
    theirs = await servers.with_key("alice", "operate")
    assert (await theirs.to(servers.ours.app).get("/api/sessions")).status == 401, "a key of another tenant"
    before = await store.read(THEIRS)
    for route in ROUTES:
        path = route.path.replace("{session}", THEIRS)
        for name in ("id", "device", "path", "name", "team", "thread", "turn", "digest", "policy"):
            path = path.replace(f"{{{name}}}", "x")
        query = "&".join(f"{name}={THEIRS if name == 'session' else SECRET}" for name in route.query)
        body = json.dumps(_body_for(route.takes)).encode() if route.takes is not None else b""
        answer = await servers.ours.send(route.method, f"{path}?{query}" if query else path, body)
        shown = answer.body.decode()
        assert answer.status != 500, (route.path, shown)
        if "{session}" in route.path:
            assert answer.status >= 400, (route.path, shown)
        elif answer.status == 200:
            assert SECRET not in shown, route.path
            assert "secret" not in shown, route.path
    assert await store.read(THEIRS) == before


def _body_for(kind: type) -> dict[str, object]:
    """A body that the route takes as valid, as far as types say so."""
    import msgspec

    filled: dict[str, object] = {}
    values: dict[object, object] = {str: "x", int: 1, bool: True}
    for each in msgspec.structs.fields(kind):
        if each.required:
            filled[each.encode_name] = values.get(each.type, "approve" if each.name == "verdict" else [])
    return filled
