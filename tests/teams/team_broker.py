"""A broker in memory: real store, gate and dispatch, with scripted members."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast.agent import SessionGuests
from holdfast.core import Clock, FakeClock, SessionId, Toolset, UserMessage, Verdict, encode
from holdfast.guests import ScriptedEngine
from holdfast.models import Reply as ModelReply
from holdfast.models import ScriptedModel, say
from holdfast.models.contract import OnPiece, Prompt
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.session import Session, SessionParts, Settings, build_session
from holdfast.store import Home, MemoryStore, Store
from holdfast.teams import (
    Broker,
    MemberFactory,
    Roster,
    ScriptedProgram,
    Team,
    TeamsSettings,
    give_tools,
)
from holdfast.teams.members.factory import IssueToken
from holdfast.world import MemoryWorld, StagedWorld


def roster(*names: str, project: str, settings: Mapping[str, Any] | None = None, **team: Any) -> Roster:
    """A roster of teams that differ only in their names."""
    return Roster(
        settings=TeamsSettings(**(settings or {})),
        teams={
            name: Team(**({"name": name, "project": project, "member": "scripted"} | team)) for name in names
        },
    )


@asynccontextmanager
async def team_broker(
    tmp_path: Path,
    team_roster: Roster,
    *,
    program: ScriptedProgram | None = None,
    store: Store | None = None,
    clock: Clock | None = None,
    verdicts: Mapping[str, Verdict] | None = None,
    environ: Mapping[str, str] | None = None,
    issue_token: IssueToken | None = None,
    home: Path | None = None,
    hanging: asyncio.Event | None = None,
    model: Callable[[Prompt], ModelReply] | None = None,
) -> AsyncIterator[Broker]:
    """Open a broker over these parts. Pass the store and the program to keep them across two brokers."""
    clock = clock or FakeClock()
    kept = store or MemoryStore(clock=clock)
    policy = FixedPolicy(default="allow", verdicts=verdicts or {})
    engine = ScriptedEngine()

    async def open_session(session: SessionId, team: Team, toolsets: Sequence[Toolset]) -> Session:
        return await build_session(
            SessionParts(
                journal=await kept.open(session),
                store=kept,
                staged=StagedWorld(MemoryWorld()),
                paths=LexicalPaths(),
                policy=policy,
                model=EchoModel(hanging or asyncio.Event(), model or echo_model),
                guests=SessionGuests.single(engine.guest()),
                settings=Settings(),
                clock=clock,
                toolsets=toolsets,
            )
        )

    factory = MemberFactory(
        roster=team_roster,
        folder=tmp_path / "teams",
        home=Home(home or tmp_path / "home"),
        store=kept,
        clock=clock,
        open_policy=lambda _: policy,
        open_session=open_session,
        environ=environ or {},
        scripted=program,
    )
    if issue_token is not None:
        factory.issue_token = issue_token
    broker = Broker(roster=team_roster, folder=tmp_path / "teams", store=kept, factory=factory, clock=clock)
    give_tools(factory, broker)
    async with broker:
        yield broker
    await engine.close()
    if store is None:
        await kept.close()


class EchoModel(ScriptedModel):
    """The model of Holdfast members; `hang` makes it never answer."""

    def __init__(self, hanging: asyncio.Event, reply: Callable[[Prompt], ModelReply]) -> None:
        super().__init__([reply] * 100)
        self._hanging = hanging

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> ModelReply:
        if messages_to(prompt)[-1] == "hang":
            self._hanging.set()
            await asyncio.get_running_loop().create_future()
        return await super().ask(prompt, on_piece)


def messages_to(prompt: Prompt) -> list[str]:
    """The messages of a conversation so far."""
    return [_message(each.text) for each in prompt.messages if isinstance(each, UserMessage)]


def echo_model(prompt: Prompt) -> ModelReply:
    """The same echo and recall as the scripted program's."""
    messages = messages_to(prompt)
    if messages[-1] == "recall":
        return say(f"recall: {encode(messages[:-1]).decode()}")
    return say(f"echo[{len(messages)}]: {messages[-1]}")


def _message(text: str) -> str:
    """The text between the marks."""
    *_, last = text.split("[")
    return last.split("\n", 1)[1].rsplit("\n", 1)[0] if "\n" in last else text
