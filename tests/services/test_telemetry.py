"""Counts and traces say what the journal says, and nothing of what was said."""

import asyncio
from pathlib import Path
from typing import Any

from holdfast.app import Runtime
from holdfast.core import Response, SystemClock
from holdfast.models import ScriptedModel, use
from holdfast.policy import FixedPolicy
from holdfast.services import Metrics, Traces, serve_metrics
from holdfast.session import Settings
from holdfast.store import MemoryStore

SECRET = "the launch code is 0000"


class Span:
    """What was told to OpenTelemetry about one span."""

    def __init__(self, name: str, attributes: dict[str, Any], start: int | None) -> None:
        self.name, self.attributes, self.start, self.ended = name, dict(attributes), start, 0

    def set_attributes(self, attributes: dict[str, Any]) -> None:
        self.attributes |= attributes

    def end(self, end_time: int) -> None:
        self.ended = end_time


class Recorder:
    """A tracer that keeps its spans."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def start_span(
        self, name: str, context: Any = None, *, attributes: Any = None, start_time: int | None = None
    ) -> Any:
        self.spans.append(Span(name, attributes, start_time))
        return self.spans[-1]


async def request(port: int, path: str, host: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


async def test_a_turn_is_counted_and_traced_without_its_contents(tmp_path: Path) -> None:
    store, tracer = MemoryStore(clock=SystemClock()), Recorder()
    settings = Settings(acts_with="tools", restore_points="never")
    runtime = await Runtime.start(home=tmp_path / "home", settings=settings, store=store, servers=())
    metrics = Metrics(runtime.live_sessions, store)
    Traces(runtime.live_sessions, tracer)
    policy = FixedPolicy(default="allow", verdicts={"world.write": "escalate"})
    model = ScriptedModel([use("world__write", {"path": "a.txt", "content": SECRET}), SECRET])
    session = await runtime.create(model=model, policy=policy)
    await session.send(SECRET)
    (escalation,) = session.escalations()
    await session.resolve(escalation.id, Response(verdict="approve"))
    await session.advance()
    async with serve_metrics(metrics.text, 0) as port:
        shown = await request(port, "/metrics", f"127.0.0.1:{port}")
        assert (await request(port, "/other", f"localhost:{port}")).startswith("HTTP/1.1 404")
        assert (await request(port, "/metrics", "evil.example:80")).startswith("HTTP/1.1 421")
    await runtime.close()
    assert 'holdfast_turns_total{outcome="ok"} 1' in shown
    assert 'holdfast_calls_total{result="ok"} 1' in shown
    assert "holdfast_escalations_total 1" in shown
    assert "holdfast_live_sessions 1" in shown
    names = [span.name.partition(" ")[0] for span in tracer.spans]
    assert names == ["invoke_agent", "chat", "wait", "execute_tool", "chat"]
    assert all(span.ended >= (span.start or 0) > 0 for span in tracer.spans)
    assert tracer.spans[0].attributes["gen_ai.conversation.id"] == session.id
    assert SECRET not in shown
    assert SECRET not in str([vars(span) for span in tracer.spans])
