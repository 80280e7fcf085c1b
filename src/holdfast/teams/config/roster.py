"""The roster: which teams exist, what they may do, and who may ask whom. Immutable; `parse.py` creates it."""

from typing import Literal

import msgspec

from holdfast.core import Limits, Value
from holdfast.teams.errors import AskRefused, UnknownTeam
from holdfast.teams.pairs import EXTERNAL_SENDER, Pair, check_thread

MemberKind = Literal["holdfast", "claude", "acp", "scripted"]
GateMode = Literal["every-call", "asks"]


class Team(Value):
    """One team: a project folder and the kind of member that answers for it."""

    name: str
    project: str
    description: str = ""
    member: MemberKind = "holdfast"
    policy: str = "project"
    """Judges what the member wants to do, regardless of who sent the message."""
    model: str = ""
    program: str = ""
    """The program of an external member; empty for the default program."""
    arguments: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """The built-in tools that an external member gets; empty for the default ones."""
    environment: tuple[str, ...] = ()
    """Names of environment variables passed to the program; it inherits no others."""
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables set for the program. Secrets belong in `environment`."""
    mode: str = ""
    """The mode of an ACP agent, which decides what it asks permission for."""
    gate: GateMode = "every-call"
    """Which tool calls a member must submit to our gate; `asks` accepts that it chooses them itself."""
    color: str = ""
    budget: Limits = Limits()
    """The limits of each session of the team."""
    asked_by: tuple[str, ...] | None = None
    """Who may ask it; None for every sender."""


class TeamsSettings(Value):
    """Settings of all teams."""

    max_processes: int = 10
    idle_seconds: float = 300.0
    health_seconds: float = 30.0
    queue_seconds: float = 60.0
    """How long a message waits for a free member before it fails."""
    turn_seconds: float = 3600.0
    """The longest a turn may take, whatever the caller allows."""
    silence_seconds: float = 600.0
    """How long a member may send nothing before it counts as lost."""
    approval_seconds: float = 300.0
    """How long a person has to approve a member's call; after that it is denied."""
    awake_at_start: int = 0
    """How many members, those of the busiest pairs, are woken when serving starts."""
    max_hops: int = 8
    compact_tokens: int = 150_000
    """A conversation that uses more tokens is summarised before the next message."""
    archive_days: int = 90
    """A conversation unused for this long is archived; the next message reopens it."""
    budget: Limits = Limits()
    """The limits of all teams together."""


class Roster(Value):
    """Every team, and the settings of all of them."""

    settings: TeamsSettings = TeamsSettings()
    teams: dict[str, Team] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What its author should know: fields that have another effect than in the program they were written for."""

    def team(self, name: str) -> Team:
        """The team of this name. Raises UnknownTeam."""
        if name not in self.teams:
            known = ", ".join(sorted(self.teams)) or "none"
            raise UnknownTeam(f"there is no team {name!r}", hint=f"teams on the roster: {known}")
        return self.teams[name]

    def pair(self, sender: str, receiver: str, thread: str = "") -> Pair:
        """The pair of these teams, if the sender may ask the receiver. Raises UnknownTeam, AskRefused."""
        team = self.team(receiver)
        if sender != EXTERNAL_SENDER:
            self.team(sender)
        if team.asked_by is not None and sender not in team.asked_by:
            raise AskRefused(
                f"{sender} may not ask {receiver}",
                hint=f"add {sender!r} to asked_by of {receiver!r} in the roster",
            )
        return Pair(sender=sender, receiver=receiver, thread=check_thread(thread))
