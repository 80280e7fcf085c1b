"""The agent loops of other frameworks with their own stores in PostgreSQL: the same instant model, one tool, durable."""

import importlib.util
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Turn = Callable[[str], Awaitable[object]]
"""Runs one turn of the named session."""
CONNECTIONS = 20


def peers() -> dict[str, Callable[[str], Any]]:
    """The installed peers by name; each takes the address of a database and returns a context manager with its turn."""
    known = {
        "langgraph + checkpoint-postgres": ("langgraph.checkpoint.postgres", _langgraph),
        "openai-agents + SQLAlchemySession": ("agents.extensions.memory.sqlalchemy_session", _openai_agents),
    }
    return {name: make for name, (module, make) in known.items() if _is_installed(module)}


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@asynccontextmanager
async def _langgraph(url: str) -> AsyncIterator[Turn]:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.prebuilt import create_react_agent
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    class Instant(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "instant"

        def bind_tools(self, *_: Any, **__: Any) -> "Instant":
            return self

        def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
            if isinstance(messages[-1], HumanMessage):
                call = {"name": "exists", "args": {"path": "a.txt"}, "id": f"c{len(messages)}"}
                reply = AIMessage(content="", tool_calls=[call])
            else:
                reply = AIMessage(content="done")
            return ChatResult(generations=[ChatGeneration(message=reply)])

        async def _agenerate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
            return self._generate(messages)

    @tool
    async def exists(path: str) -> bool:
        """Whether a file exists."""
        return False

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: Any = AsyncConnectionPool(
        url, min_size=CONNECTIONS, max_size=CONNECTIONS, kwargs=options, open=False
    )
    async with pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        agent = create_react_agent(Instant(), [exists], checkpointer=saver)

        async def turn(session: str) -> object:
            said = {"messages": [HumanMessage(content="go on")]}
            return await agent.ainvoke(said, {"configurable": {"thread_id": session}}, durability="sync")

        yield turn


@asynccontextmanager
async def _openai_agents(url: str) -> AsyncIterator[Turn]:
    from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from agents.extensions.memory.sqlalchemy_session import SQLAlchemySession
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )
    from sqlalchemy.ext.asyncio import create_async_engine

    set_tracing_disabled(True)  # it would send its traces away

    class Instant(Model):
        async def get_response(self, *rest: Any, input: Any, **more: Any) -> ModelResponse:
            output: Any
            if input[-1].get("role") == "user":
                output = ResponseFunctionToolCall(
                    arguments='{"path": "a.txt"}',
                    call_id=f"c{len(input)}",
                    name="exists",
                    type="function_call",
                )
            else:
                text = ResponseOutputText(text="done", type="output_text", annotations=[])
                output = ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **more: Any) -> Any:
            raise NotImplementedError

    @function_tool
    async def exists(path: str) -> bool:
        """Whether a file exists."""
        return False

    engine = create_async_engine(
        url.replace("postgresql://", "postgresql+asyncpg://", 1), pool_size=CONNECTIONS
    )
    agent = Agent(name="bench", model=Instant(), tools=[exists])
    await SQLAlchemySession("first", engine=engine, create_tables=True).get_items()

    async def turn(session: str) -> object:
        return await Runner.run(agent, "go on", session=SQLAlchemySession(session, engine=engine))

    try:
        yield turn
    finally:
        await engine.dispose()
