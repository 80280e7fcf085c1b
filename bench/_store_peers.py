"""The stores of other frameworks behind one contract, each used as documented and at its full durability."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

TURN = (
    "Why does the parser fail on the second line? " * 4,
    "src/parser/lines.py",
    "def parse(line):\n    return line.split(',')  # quartz\n" * 55,
    "The second line holds a quoted comma, which split does not know about. " * 8,
)
"""A question, a call, its result and an answer: about 4 KB."""


class MeasuredStore(Protocol):
    """A store under measurement. `longest` and `most_sessions` limit the slow ones, `rounds` the slowest."""

    name: str
    longest: int
    most_sessions: int
    rounds: int
    at_once: int
    """How many sessions can be created concurrently."""

    async def start(self, folder: Path) -> None: ...
    async def create(self, session: str) -> None: ...
    async def append(self, session: str, turns: int = 1) -> None: ...
    async def load(self, session: str) -> int: ...
    async def list_newest(self, limit: int) -> int: ...
    async def fork(self, session: str, messages: int) -> None: ...
    async def close(self) -> None: ...


def messages(turns: int) -> list[dict[str, Any]]:
    """Turns as the messages that most frameworks keep."""
    question, call, result, answer = TURN
    return [
        {"role": "user", "content": question},
        {"role": "assistant", "content": f"read {call}"},
        {"role": "user", "content": result},
        {"role": "assistant", "content": answer},
    ] * turns


class OpenAIAgents:
    """SQLiteSession of openai-agents."""

    name = "openai-agents"
    longest = 10_000
    most_sessions = 0  # it has no list
    rounds = 20
    at_once = 1

    async def start(self, folder: Path) -> None:
        from agents import SQLiteSession

        folder.mkdir(parents=True, exist_ok=True)
        self._make = lambda session: SQLiteSession(session, folder / "agents.db")
        self._sessions: dict[str, Any] = {}
        self._forks = 0

    async def create(self, session: str) -> None:
        self._sessions[session] = self._make(session)
        await self._sessions[session].add_items([])

    async def append(self, session: str, turns: int = 1) -> None:
        await self._sessions[session].add_items(messages(turns))

    async def load(self, session: str) -> int:
        return len(await self._make(session).get_items())

    async def list_newest(self, limit: int) -> int:
        return 0

    async def fork(self, session: str, messages: int) -> None:
        self._forks += 1
        items = await self._sessions[session].get_items()
        await self._make(f"{session}-fork-{self._forks}").add_items(items[:messages])

    async def close(self) -> None:
        for session in self._sessions.values():
            session.close()


class LangGraph:
    """AsyncSqliteSaver of langgraph: a checkpoint of the whole state per turn, with the messages that its graphs keep."""

    name = "langgraph"
    longest = 10_000
    most_sessions = 100
    rounds = 10
    at_once = 1

    async def start(self, folder: Path) -> None:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        folder.mkdir(parents=True, exist_ok=True)
        self._stack = AsyncExitStack()
        self._saver = await self._stack.enter_async_context(
            AsyncSqliteSaver.from_conn_string(str(folder / "graph.db"))
        )
        await self._saver.conn.execute("PRAGMA busy_timeout = 60000")
        self._state: dict[str, list[Any]] = {}
        self._forks = 0

    async def create(self, session: str) -> None:
        self._state[session] = []
        await self._put(session)

    async def append(self, session: str, turns: int = 1) -> None:
        self._state[session] = self._state[session] + _graph_messages(turns)
        await self._put(session)

    async def load(self, session: str) -> int:
        found = await self._saver.aget_tuple(_thread(session))
        return len(found.checkpoint["channel_values"]["messages"]) if found else 0

    async def list_newest(self, limit: int) -> int:
        return len([one async for one in self._saver.alist(None, limit=limit)])

    async def fork(self, session: str, messages: int) -> None:
        self._forks += 1
        found = await self._saver.aget_tuple(_thread(session))
        assert found is not None
        name = f"{session}-fork-{self._forks}"
        self._state[name] = found.checkpoint["channel_values"]["messages"][:messages]
        await self._put(name)

    async def close(self) -> None:
        await self._stack.aclose()

    async def _put(self, session: str) -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": self._state[session]}
        checkpoint["channel_versions"] = {"messages": len(self._state[session])}
        await self._saver.aput(_thread(session), checkpoint, {"source": "loop"}, {})


class GoogleADK:
    """SqliteSessionService of google-adk: one event per message."""

    name = "google-adk"
    longest = 1_000
    most_sessions = 100
    rounds = 4
    at_once = 1

    async def start(self, folder: Path) -> None:
        from google.adk.sessions.sqlite_session_service import SqliteSessionService

        folder.mkdir(parents=True, exist_ok=True)
        self._service = SqliteSessionService(str(folder / "adk.db"))
        self._sessions: dict[str, Any] = {}
        self._forks = 0

    async def create(self, session: str) -> None:
        self._sessions[session] = await self._service.create_session(
            app_name="bench", user_id="u", session_id=session
        )

    async def append(self, session: str, turns: int = 1) -> None:
        await self._append(session, messages(turns))

    async def load(self, session: str) -> int:
        found = await self._service.get_session(app_name="bench", user_id="u", session_id=session)
        return len(found.events) if found else 0

    async def list_newest(self, limit: int) -> int:
        return len((await self._service.list_sessions(app_name="bench", user_id="u")).sessions[:limit])

    async def fork(self, session: str, messages: int) -> None:
        self._forks += 1
        found = await self._service.get_session(app_name="bench", user_id="u", session_id=session)
        assert found is not None
        name = f"{session}-fork-{self._forks}"
        await self.create(name)
        for event in found.events[:messages]:
            await self._service.append_event(self._sessions[name], event)

    async def close(self) -> None:
        await self._service.close()

    async def _append(self, session: str, items: list[dict[str, Any]]) -> None:
        from google.adk.events import Event
        from google.genai import types

        for item in items:
            content = types.Content(role=item["role"], parts=[types.Part(text=item["content"])])
            await self._service.append_event(
                self._sessions[session], Event(author=item["role"], content=content)
            )


def _graph_messages(turns: int) -> list[Any]:
    """Turns as langchain messages, the form in which a graph's state holds them."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    question, call, result, answer = TURN
    asked = {"name": "read", "args": {"path": call}, "id": "1"}
    return [
        message
        for _ in range(turns)
        for message in (
            HumanMessage(content=question),
            AIMessage(content="", tool_calls=[asked]),
            ToolMessage(content=result, tool_call_id="1"),
            AIMessage(content=answer),
        )
    ]


def _thread(session: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": session, "checkpoint_ns": ""}}


PEERS = (OpenAIAgents, LangGraph, GoogleADK)
