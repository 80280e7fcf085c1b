"""The staff: from a pair to the member that answers in it. Which program that is stands on the roster."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, assert_never

import holdfast.teams.members.agent_home as agent_home
from holdfast.core import Clock, SessionId, Toolset
from holdfast.gate import ApprovalFiles, Gate, GateSettings, TreeBudget
from holdfast.mcp import ExternalTools
from holdfast.policy import Policy
from holdfast.session import Session
from holdfast.store import Home, Journal, Store
from holdfast.teams.config.roster import Roster, Team
from holdfast.teams.contract import Agent, Member
from holdfast.teams.errors import MemberMissing
from holdfast.teams.members.external_member import ExternalMember
from holdfast.teams.members.scripted import ScriptedProgram
from holdfast.teams.members.session_member import SessionMember
from holdfast.teams.pairs import Pair
from holdfast.teams.server.auth import Introduction
from holdfast.world import WorldPaths

if TYPE_CHECKING:
    from holdfast.teams.acp.agent import AcpAgent

OpenSession = Callable[[SessionId, Team, Sequence[Toolset]], Awaitable[Session]]
"""Takes up one of our own sessions with these tools besides its own; it is there already. Handed in, for only the
composition root builds sessions."""
Introduce = Callable[[Pair, SessionId], Introduction | None]
"""How the foreign member of a session reaches the teams' server in its turn; None for not at all."""
Equip = Callable[[Pair, SessionId], Sequence[Toolset]]
"""The tools with which a member that is one of our own sessions reaches its colleagues."""


class LaunchOptions(TypedDict):
    """Where a foreign program is put, and what it is told of the others."""

    team: Team
    folder: Path
    environ: Mapping[str, str]
    silence_seconds: float
    teams_server: Mapping[str, Any] | None


class MemberFactory:
    """Wakes members."""

    def __init__(
        self,
        *,
        roster: Roster,
        folder: Path,
        home: Home,
        store: Store,
        clock: Clock,
        open_policy: Callable[[str], Policy],
        open_session: OpenSession,
        environ: Mapping[str, str],
        scripted: ScriptedProgram | None = None,
    ) -> None:
        self._roster = roster
        self._folder = folder
        self._home = home
        self._store = store
        self._clock = clock
        self._open_policy = open_policy
        self._open_session = open_session
        self._environ = environ
        self._scripted = scripted or ScriptedProgram()
        self.introduce: Introduce = lambda _pair, _session: None
        self.equip: Equip = lambda _pair, _session: ()

    def policy_digest(self, team: Team) -> str:
        """Names the policy that a team goes by. Raises InvalidPolicy."""
        return self._open_policy(team.policy).digest

    async def wake(self, pair: Pair, session: SessionId, *, tree: TreeBudget) -> Member:
        """The member for a pair whose session is there. Raises MemberFailed, MemberMissing, SessionHeld."""
        team = self._roster.team(pair.receiver)
        if team.member == "holdfast":
            opened = await self._open_session(session, team, self.equip(pair, session))
            opened.budget.join_tree(tree)
            return SessionMember(opened)
        async with AsyncExitStack() as stack:
            journal = await self._store.open(session)
            stack.push_async_callback(journal.release)
            agent_home.claim(self._quarters(session), pair)
            agent = self._agent(team, self._introduced(pair, session, stack), session)
            _check_gate(team, agent)
            stack.push_async_callback(agent.close)
            gate = self._gate(journal, team, tree)
            rendezvous = ApprovalFiles(self._home.escalations(session), gate=gate, journal=journal)
            self._home.prepare_session(session)
            await rendezvous.open()
            stack.push_async_callback(rendezvous.close)
            member = ExternalMember(
                journal=journal,
                gate=gate,
                agent=agent,
                clock=self._clock,
                folder=team.project,
                on_close=stack.pop_all().aclose,
            )
            stack.push_async_callback(member.close)
            await member.open()
            stack.pop_all()
        return member

    async def copy_quarters(self, session: SessionId, branch: SessionId) -> None:
        """Give the member of another session what the program of this one has kept; it has to be asleep."""
        kept, fresh = self._quarters(session), self._quarters(branch)
        if kept.is_dir():
            await asyncio.to_thread(shutil.copytree, kept, fresh, symlinks=True, ignore=_passing)
        self._scripted.copy_home(session, branch)

    def _quarters(self, session: SessionId) -> Path:
        return self._folder / "pairs" / session

    def _introduced(self, pair: Pair, session: SessionId, stack: AsyncExitStack) -> Mapping[str, Any] | None:
        introduction = self.introduce(pair, session)
        if introduction is None:
            return None
        stack.callback(introduction.withdraw)
        return introduction.entry

    def _gate(self, journal: Journal, team: Team, tree: TreeBudget) -> Gate:
        return Gate(
            journal=journal,
            policy=self._open_policy(team.policy),
            toolsets=[self._tools(team)],
            paths=WorldPaths(Path(team.project), protected=(self._home.root,), guest_root=None),
            clock=self._clock,
            settings=GateSettings(escalation_seconds=self._roster.settings.approval_seconds),
            tree=tree,
        )

    def _tools(self, team: Team) -> Toolset:
        if team.member == "acp":
            from holdfast.teams.acp.tools import AgentTools

            return AgentTools()
        return ExternalTools(self._scripted.kind if team.member == "scripted" else team.member)

    def _agent(self, team: Team, server: Mapping[str, Any] | None, session: SessionId) -> Agent:
        match team.member:
            case "claude":
                from holdfast.teams.claude.agent import ClaudeAgent

                return ClaudeAgent(**self._station(team, server, session))
            case "acp":
                return _acp_agent()(**self._station(team, server, session))
            case "scripted":
                return self._scripted.agent(session)
            case "holdfast":
                raise AssertionError("own sessions are opened above")
            case _:
                assert_never(team.member)

    def _station(self, team: Team, server: Mapping[str, Any] | None, session: SessionId) -> LaunchOptions:
        return {
            "team": team,
            "folder": self._quarters(session),
            "environ": self._environ,
            "silence_seconds": self._roster.settings.silence_seconds,
            "teams_server": server,
        }


def _passing(folder: str, names: list[str]) -> list[str]:
    """What is not worth copying: what the program left for the moment, and our own word to it."""
    return [name for name in names if name in ("tmp", "servers.json", "pair")]


def _acp_agent() -> "type[AcpAgent]":
    try:
        from holdfast.teams.acp.agent import AcpAgent
    except ModuleNotFoundError as error:
        raise MemberMissing(
            "members over ACP need the Agent Client Protocol library",
            hint="holdfast doctor says how to install it",
        ) from error
    return AcpAgent


def _check_gate(team: Team, agent: Agent) -> None:
    """A team whose every call is to be judged gets no member that chooses what to ask about."""
    if team.gate == "every-call" and agent.capabilities.gate != "every-call":
        raise MemberMissing(
            f"a member of kind {agent.kind} does not ask about every tool, and {team.name} wants that",
            hint="write gate: asks in the roster to accept it",
        )
