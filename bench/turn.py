"""A whole turn with an instant model and one tool call, at growing histories; and what a session costs to start and close.

The peers' own loops do the same with the same instant model, in memory and without a record; ours is durable. Peers: the
loop of pydantic-ai comes with us; openai-agents is listed in bench/requirements.in and is not wired here.
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from holdfast.app import Runtime
from holdfast.core import PERSON, ModelMessage, Ok, TextPart, ToolCallPart, Usage
from holdfast.core.events import MessagePosted, ModelReplied, TurnEnded
from holdfast.models import OnText, Prompt, Reply
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings

HISTORIES = (10, 1_000, 10_000)
TURNS = 15
READ = "world__exists"


class Instant:
    """Asks for one tool, then answers; looks only at the last message."""

    name = "scripted:instant"
    context_tokens = None

    def __init__(self) -> None:
        self._calls = 0

    async def ask(self, prompt: Prompt, on_text: OnText) -> Reply:
        if prompt.messages[-1].__class__.__name__ == "UserMessage":
            self._calls += 1
            part = ToolCallPart(id=f"c{self._calls}", tool=READ, arguments={"path": "a.txt"})
            return Reply(
                message=ModelMessage(parts=(part,)), usage=Usage(input_tokens=1), finish="tool-calls"
            )
        return Reply(message=ModelMessage(parts=(TextPart(text="done"),)), usage=Usage(input_tokens=1))

    async def close(self) -> None:
        """Nothing is held."""


def main() -> None:
    """Run it all and print the table."""
    asyncio.run(_measure())
    asyncio.run(_measure_pydantic_ai())


async def _measure() -> None:
    with tempfile.TemporaryDirectory() as folder:
        runtime = await Runtime.start(
            home=Path(folder) / "home", settings=Settings(mode="tools", restore_points="never")
        )
        starts, closes = [], []
        for _ in range(20):
            begun = time.perf_counter()
            session = await runtime.create(model=Instant(), policy=FixedPolicy(default="allow"))
            starts.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            await session.close()
            closes.append(time.perf_counter() - begun)
        print(f"{'session ready / closed, ms':<46}{_ms(starts):>8.2f} /{_ms(closes):>7.2f}")
        for messages in HISTORIES:
            session = await runtime.create(model=Instant(), policy=FixedPolicy(default="allow"))
            await _fill(session, messages)
            times = []
            for _ in range(TURNS):
                begun = time.perf_counter()
                await session.send("go on")
                times.append(time.perf_counter() - begun)
            print(f"{f'holdfast, a turn at {messages:,} messages, ms (durable)':<46}{_ms(times):>8.2f}")
            await session.close()
        await runtime.close()
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
        print(f"{'memory of the host, MB':<46}{resident:>8.0f}")


async def _fill(session: Session, messages: int) -> None:
    for turn in range(1, messages // 2 + 1):
        await session._journal.append(
            MessagePosted(turn=turn, text="hello " * 20, principal=PERSON),
            ModelReplied(
                turn=turn,
                step=1,
                model="scripted:instant",
                message=ModelMessage(parts=(TextPart(text="hi " * 20),)),
                usage=Usage(input_tokens=1),
            ),
            TurnEnded(turn=turn, outcome=Ok(value="hi")),
        )


async def _measure_pydantic_ai() -> None:
    try:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart
        from pydantic_ai.messages import TextPart as Text
        from pydantic_ai.messages import ToolCallPart as Wish
        from pydantic_ai.models.function import AgentInfo, FunctionModel
    except ImportError:
        print("pydantic-ai: not installed")
        return

    def instant(messages: list[object], info: AgentInfo) -> ModelResponse:
        last = messages[-1]
        if isinstance(last, ModelRequest) and isinstance(last.parts[-1], UserPromptPart):
            return ModelResponse(parts=[Wish("exists", {"path": "a.txt"})])
        return ModelResponse(parts=[Text("done")])

    agent = Agent(FunctionModel(instant))  # type: ignore[arg-type]

    @agent.tool_plain
    def exists(path: str) -> bool:
        return False

    for count in HISTORIES:
        history: list[object] = []
        for _ in range(count // 2):
            history.append(ModelRequest(parts=[UserPromptPart("hello " * 20)]))
            history.append(ModelResponse(parts=[Text("hi " * 20)]))
        times = []
        for _ in range(TURNS):
            begun = time.perf_counter()
            await agent.run("go on", message_history=history)  # type: ignore[arg-type]
            times.append(time.perf_counter() - begun)
        print(f"{f'pydantic-ai, the same in memory at {count:,}, ms':<46}{_ms(times):>8.2f}")


def _ms(times: list[float]) -> float:
    return statistics.median(times) * 1000


if __name__ == "__main__":
    main()
