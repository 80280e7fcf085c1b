"""Teams: who may talk to whom, one session for each directed pair, members and their pool."""

from holdfast.teams.callers import Caller, Callers, Introduction
from holdfast.teams.contract import Agent, Bound, Capabilities, Letter, Member, OnCall, Reply
from holdfast.teams.correspondence import Correspondence, Posted
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
from holdfast.teams.figures import CompanyFigures, PairFigures
from holdfast.teams.flights import FlightReport
from holdfast.teams.letters import written
from holdfast.teams.loading import load_roster, with_team, without_team
from holdfast.teams.mailbox import Mailbox, Notice
from holdfast.teams.own import SessionMember
from holdfast.teams.pairs import OUTSIDE, Pair
from holdfast.teams.pool import Pool
from holdfast.teams.recording import RecordedMember
from holdfast.teams.roster import CompanySettings, MemberKind, Roster, Team
from holdfast.teams.scripted import ScriptedAgent, ScriptedProgram, echo
from holdfast.teams.serving import serve_stdio, serving_http
from holdfast.teams.staff import OpenSession, Staff
from holdfast.teams.switchboard import Switchboard
from holdfast.teams.waits import Waits

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
