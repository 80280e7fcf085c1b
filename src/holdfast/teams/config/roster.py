"""The roster: which teams there are, what they may do, and who may ask whom. Frozen; `reading` parses it."""

from typing import Literal

import msgspec

from holdfast.core import Limits, Value
from holdfast.teams.errors import AskRefused, UnknownTeam
from holdfast.teams.pairs import EXTERNAL_SENDER, Pair, check_thread

MemberKind = Literal["holdfast", "claude", "acp", "scripted"]
GateMode = Literal["every-call", "asks"]


class Team(Value):
    """One team: a folder, and who answers for it."""

    name: str
    project: str
    description: str = ""
    member: MemberKind = "holdfast"
    policy: str = "project"
    """Judges what the member wants to do, whoever asked it to."""
    model: str = ""
    program: str = ""
    """The program of a foreign member; empty looks for the usual one."""
    arguments: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """The built-in tools that a foreign member is given; none means the usual ones."""
    environment: tuple[str, ...] = ()
    """Names of variables that the program is handed; it sees no others of ours."""
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables that are set for the program; what is secret is named in `environment` instead."""
    mode: str = ""
    """The mode of an agent over ACP: what it asks about."""
    gate: GateMode = "every-call"
    """Which of its tools a member has to ask us about; `asks` accepts that it chooses them itself."""
    color: str = ""
    budget: Limits = Limits()
    """Of each session of the team."""
    asked_by: tuple[str, ...] | None = None
    """Who may ask it; None is everybody."""


class TeamsSettings(Value):
    """What holds for all teams."""

    max_processes: int = 10
    idle_seconds: float = 300.0
    health_seconds: float = 30.0
    queue_seconds: float = 60.0
    """How long a message waits for a free member before it is told that there is none."""
    turn_seconds: float = 3600.0
    """The longest a turn may take, whatever the caller allows."""
    silence_seconds: float = 600.0
    """How long a member may say nothing before it counts as lost."""
    approval_seconds: float = 300.0
    """How long a person has to answer what a member may not do by itself; after that it is a no."""
    awake_at_start: int = 0
    """So many of the busiest pairs have their members woken when the teams are first served."""
    max_hops: int = 8
    compact_tokens: int = 150_000
    """A conversation that fills more of its window is summarised before the next message."""
    archive_days: int = 90
    """A conversation unused for so long is archived; the next message takes it up again."""
    budget: Limits = Limits()
    """Of all teams together."""


class Roster(Value):
    """Every team and what holds for all of them."""

    settings: TeamsSettings = TeamsSettings()
    teams: dict[str, Team] = msgspec.field(default_factory=dict)

    def team(self, name: str) -> Team:
        """The team of this name. Raises UnknownTeam."""
        if name not in self.teams:
            known = ", ".join(sorted(self.teams)) or "none"
            raise UnknownTeam(f"there is no team {name!r}", hint=f"teams on the roster: {known}")
        return self.teams[name]

    def pair(self, sender: str, receiver: str, thread: str = "") -> Pair:
        """The pair of these, where the sender may ask the receiver. Raises UnknownTeam, AskRefused."""
        team = self.team(receiver)
        if sender != EXTERNAL_SENDER:
            self.team(sender)
        if team.asked_by is not None and sender not in team.asked_by:
            raise AskRefused(
                f"{sender} may not ask {receiver}",
                hint=f"add {sender!r} to asked_by of {receiver!r} in the roster",
            )
        return Pair(sender=sender, receiver=receiver, thread=check_thread(thread))
