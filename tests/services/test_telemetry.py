"""Counts and traces say what the journal says, and nothing of what was said."""

import asyncio
from pathlib import Path

from holdfast.app import Runtime
from holdfast.core import Response, SystemClock
from holdfast.models import ScriptedModel, use
from holdfast.policy import FixedPolicy
from holdfast.services import Metrics, Traces, TraceSpan, serve_metrics
from holdfast.session import Settings
from holdfast.store import MemoryStore

SECRET = "the launch code is 0000"


class Recorder:
    """An exporter that keeps its spans."""

    def __init__(self) -> None:
        self.spans: list[TraceSpan] = []

    def export(self, span: TraceSpan) -> None:
        self.spans.append(span)

    def names(self) -> list[str]:
        return [span.name.partition(" ")[0] for span in self.spans]


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
    assert tracer.names() == ["chat", "wait", "execute_tool", "chat", "invoke_agent"]
    assert all(span.end >= span.start > 0 for span in tracer.spans)
    turn = tracer.spans[-1]
    assert {(span.trace, span.parent) for span in tracer.spans[:-1]} == {(turn.trace, turn.id)}
    assert {span.attributes["gen_ai.conversation.id"] for span in tracer.spans} == {session.id}
    assert SECRET not in shown
    assert SECRET not in str(tracer.spans)


async def test_a_turn_that_waits_in_one_process_and_ends_in_another_is_one_trace(tmp_path: Path) -> None:
    store, exporter = MemoryStore(clock=SystemClock()), Recorder()
    policy = FixedPolicy(default="allow", verdicts={"world.write": "escalate"})
    script = (use("world__write", {"path": "a.txt", "content": "x"}), "done")
    settings = Settings(acts_with="tools", restore_points="never")
    runtime = await Runtime.start(home=tmp_path / "home", settings=settings, store=store, servers=())
    Traces(runtime.live_sessions, exporter)
    session = await runtime.create(model=ScriptedModel(list(script)), policy=policy)
    await session.send("write")
    (escalation,) = session.escalations()
    await session.close()
    assert exporter.names() == ["chat"]
    other = await runtime.resume(session.id, model=ScriptedModel(list(script)), policy=policy)
    await other.resolve(escalation.id, Response(verdict="approve"))
    await other.advance()
    await runtime.close()
    assert exporter.names() == ["chat", "wait", "execute_tool", "chat", "invoke_agent"]
    assert len({span.trace for span in exporter.spans}) == 1
    assert {span.parent for span in exporter.spans[:-1]} == {exporter.spans[-1].id}
