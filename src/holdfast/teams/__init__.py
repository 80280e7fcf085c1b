"""Teams: who may talk to whom, one session for each directed pair, members and their pool."""

from holdfast.teams.broker import Switchboard
from holdfast.teams.config.load import load_roster, with_team, without_team
from holdfast.teams.config.roster import CompanySettings, MemberKind, Roster, Team
from holdfast.teams.contract import Agent, Bound, Capabilities, Letter, Member, OnCall, Reply
from holdfast.teams.deadlock import Waits
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
from holdfast.teams.history import Correspondence, Posted
from holdfast.teams.in_flight import FlightReport
from holdfast.teams.members.external_member import RecordedMember
from holdfast.teams.members.factory import OpenSession, Staff
from holdfast.teams.members.scripted import ScriptedAgent, ScriptedProgram, echo
from holdfast.teams.members.session_member import SessionMember
from holdfast.teams.message_text import written
from holdfast.teams.pair_log import Mailbox, Notice
from holdfast.teams.pairs import OUTSIDE, Pair
from holdfast.teams.pool import Pool
from holdfast.teams.server.auth import Caller, Callers, Introduction
from holdfast.teams.server.serve import serve_stdio, serving_http
from holdfast.teams.stats import CompanyFigures, PairFigures

__all__ = [
    "OUTSIDE",
    "Agent",
    "AskRefused",
    "Bound",
    "Caller",
    "Callers",
    "Capabilities",
    "CompanyFigures",
    "CompanySettings",
    "Correspondence",
    "FlightReport",
    "Introduction",
    "Letter",
    "Mailbox",
    "Member",
    "MemberFailed",
    "MemberKind",
    "MemberLost",
    "MemberMissing",
    "Notice",
    "OnCall",
    "OpenSession",
    "Pair",
    "PairFigures",
    "Pool",
    "PoolFull",
    "Posted",
    "RecordedMember",
    "Reply",
    "Roster",
    "ScriptedAgent",
    "ScriptedProgram",
    "SessionMember",
    "Staff",
    "Switchboard",
    "Team",
    "TeamError",
    "TooManyHops",
    "UnknownTeam",
    "Waits",
    "WouldDeadlock",
    "echo",
    "load_roster",
    "serve_stdio",
    "serving_http",
    "with_team",
    "without_team",
    "written",
]
