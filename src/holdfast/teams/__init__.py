"""Teams of agents that message each other: roster, broker, members, and one session per directed pair of teams.

Start with `broker.py`. The MCP server that exposes it is in `server/`; `acp/` and `claude/` drive external agents.
"""

from holdfast.teams.broker import Broker
from holdfast.teams.config.load import load_roster, with_team, without_team
from holdfast.teams.config.roster import MemberKind, Roster, Team, TeamsSettings
from holdfast.teams.contract import (
    Agent,
    Member,
    MemberCapabilities,
    OnCall,
    OpenedConversation,
    TeamMessage,
    TeamReply,
)
from holdfast.teams.deadlock import WaitGraph
from holdfast.teams.errors import (
    AskRefused,
    MemberFailed,
    MemberLost,
    MemberMissing,
    PoolFull,
    TeamError,
    TooManyHops,
    UnknownTeam,
    WouldDeadlock,
)
from holdfast.teams.history import HistoryTurn, PairHistory
from holdfast.teams.in_flight import MessageStatus
from holdfast.teams.members.external_member import ExternalMember
from holdfast.teams.members.factory import MemberFactory, OpenSession
from holdfast.teams.members.scripted import ScriptedAgent, ScriptedProgram, echo
from holdfast.teams.members.session_member import SessionMember
from holdfast.teams.message_text import render_message
from holdfast.teams.overview import PairState, TeamsOverview, teams_overview
from holdfast.teams.pair_log import Notice, Notices, message_queue_of
from holdfast.teams.pairs import EXTERNAL_SENDER, Pair
from holdfast.teams.pool import Pool
from holdfast.teams.server.auth import OPERATOR, Caller, Callers, IssuedToken
from holdfast.teams.server.calls import ToolAnswer, reply_of
from holdfast.teams.server.serve import serve_stdio, serving_http
from holdfast.teams.server.shared_broker import SharedBroker
from holdfast.teams.server.token_file import TokenFile
from holdfast.teams.server.tools import MAX_TIMEOUT_MS
from holdfast.teams.stats import PairStats, TeamsStats
from holdfast.teams.toolset import give_tools

__all__ = [
    "EXTERNAL_SENDER",
    "MAX_TIMEOUT_MS",
    "OPERATOR",
    "Agent",
    "AskRefused",
    "Broker",
    "Caller",
    "Callers",
    "ExternalMember",
    "HistoryTurn",
    "IssuedToken",
    "Member",
    "MemberCapabilities",
    "MemberFactory",
    "MemberFailed",
    "MemberKind",
    "MemberLost",
    "MemberMissing",
    "MessageStatus",
    "Notice",
    "Notices",
    "OnCall",
    "OpenSession",
    "OpenedConversation",
    "Pair",
    "PairHistory",
    "PairState",
    "PairStats",
    "Pool",
    "PoolFull",
    "Roster",
    "ScriptedAgent",
    "ScriptedProgram",
    "SessionMember",
    "SharedBroker",
    "Team",
    "TeamError",
    "TeamMessage",
    "TeamReply",
    "TeamsOverview",
    "TeamsSettings",
    "TeamsStats",
    "TokenFile",
    "TooManyHops",
    "ToolAnswer",
    "UnknownTeam",
    "WaitGraph",
    "WouldDeadlock",
    "echo",
    "give_tools",
    "load_roster",
    "message_queue_of",
    "render_message",
    "reply_of",
    "serve_stdio",
    "serving_http",
    "teams_overview",
    "with_team",
    "without_team",
]
