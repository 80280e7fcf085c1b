"""The member factory: wakes the member of a pair. The roster says which kind of member that is."""

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
from holdfast.policy import Policy, policy_files
from holdfast.session import Session
from holdfast.store import Home, Journal, Store
from holdfast.teams.config.roster import Roster, Team
from holdfast.teams.contract import Agent, Member
from holdfast.teams.errors import MemberMissing
from holdfast.teams.members.external_member import ExternalMember
from holdfast.teams.members.scripted import ScriptedProgram
from holdfast.teams.members.session_member import SessionMember
from holdfast.teams.pairs import Pair
from holdfast.teams.server.auth import IssuedToken
from holdfast.world import WorldPaths

if TYPE_CHECKING:
    from holdfast.teams.acp.agent import AcpAgent

OpenSession = Callable[[SessionId, Team, Sequence[Toolset]], Awaitable[Session]]
"""Opens an existing Holdfast session with these additional tools. The composition root passes it in, because only that
root builds sessions."""
IssueToken = Callable[[Pair, SessionId], IssuedToken | None]
"""Issues the token with which a session's external member reaches the teams server; None for no access."""
ExtraTools = Callable[[Pair, SessionId], Sequence[Toolset]]
"""The additional tools of a member that is a Holdfast session, for reaching other teams."""


class LaunchOptions(TypedDict):
    """How to launch an external program: its folder, its environment, and its access to the teams server."""

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
        on_open: Callable[[Journal], None] = lambda _journal: None,
    ) -> None:
        """`on_open` is called with the journal of each external agent that starts."""
        self._roster = roster
        self._folder = folder
        self._home = home
        self._store = store
        self._clock = clock
        self._open_policy = open_policy
        self._open_session = open_session
        self._environ = environ
        self._scripted = scripted or ScriptedProgram()
        self._on_open = on_open
        self.issue_token: IssueToken = lambda _pair, _session: None
        self.extra_tools: ExtraTools = lambda _pair, _session: ()

    def policy_digest(self, team: Team) -> str:
        """The digest of a team's policy. Raises InvalidPolicy."""
        return self._open_policy(team.policy).digest

    async def wake(self, pair: Pair, session: SessionId, *, tree: TreeBudget) -> Member:
        """The member of a pair whose session exists. Raises MemberFailed, MemberMissing, SessionHeld."""
        team = self._roster.team(pair.receiver)
        if team.member == "holdfast":
            opened = await self._open_session(session, team, self.extra_tools(pair, session))
            opened.budget.join_tree(tree)
            return SessionMember(opened)
        async with AsyncExitStack() as stack:
            journal = await self._store.open(session)
            stack.push_async_callback(journal.release)
            agent_home.record_owner(self._agent_home(session), pair)
            agent = self._agent(team, self._server_entry(pair, session, stack), session)
            _check_gate(team, agent)
            stack.push_async_callback(agent.close)
            gate = self._gate(journal, team, tree)
            approvals = ApprovalFiles(self._home.escalations(session), gate=gate, journal=journal)
            self._home.prepare_session(session)
            await approvals.open()
            stack.push_async_callback(approvals.close)
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
            self._on_open(journal)
            stack.pop_all()
        return member

    async def copy_agent_home(self, session: SessionId, branch: SessionId) -> None:
        """Copy one session's agent home to another session. Its member must be asleep."""
        kept, fresh = self._agent_home(session), self._agent_home(branch)
        if kept.is_dir():
            await asyncio.to_thread(shutil.copytree, kept, fresh, symlinks=True, ignore=_ignored)
        self._scripted.copy_home(session, branch)

    def _agent_home(self, session: SessionId) -> Path:
        return self._folder / "pairs" / session

    def _server_entry(
        self, pair: Pair, session: SessionId, stack: AsyncExitStack
    ) -> Mapping[str, Any] | None:
        issued = self.issue_token(pair, session)
        if issued is None:
            return None
        stack.callback(issued.revoke)
        return issued.server_entry

    def _gate(self, journal: Journal, team: Team, tree: TreeBudget) -> Gate:
        return Gate(
            journal=journal,
            policy=self._open_policy(team.policy),
            toolsets=[self._tools(team)],
            paths=WorldPaths(
                Path(team.project),
                protected=(self._home.root,),
                closed_files=policy_files(team.policy),
                guest_root=None,
            ),
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

                return ClaudeAgent(**self._launch_options(team, server, session))
            case "acp":
                return _acp_agent()(**self._launch_options(team, server, session))
            case "scripted":
                return self._scripted.agent(session)
            case "holdfast":
                raise AssertionError("Holdfast sessions are opened above")
            case _:
                assert_never(team.member)

    def _launch_options(
        self, team: Team, server: Mapping[str, Any] | None, session: SessionId
    ) -> LaunchOptions:
        return {
            "team": team,
            "folder": self._agent_home(session),
            "environ": self._environ,
            "silence_seconds": self._roster.settings.silence_seconds,
            "teams_server": server,
        }


def _ignored(folder: str, names: list[str]) -> list[str]:
    """What not to copy: temporary files, and the files we write at launch."""
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
    """Refuse a member that chooses what to ask about, if its team wants every call judged."""
    if team.gate == "every-call" and agent.capabilities.gate != "every-call":
        raise MemberMissing(
            f"a member of kind {agent.kind} does not submit every tool call, but {team.name} requires it",
            hint="write gate: asks in the roster to accept that",
        )
