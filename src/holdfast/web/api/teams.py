"""Routes of teams: who is on the roster, how every pair stands, and the statistics of all of them."""

from holdfast.core import Value, escape_invisible
from holdfast.core.errors import HoldfastError
from holdfast.store import Home
from holdfast.teams import Roster, TeamsOverview, load_roster, teams_overview
from holdfast.web.context import WebRequest
from holdfast.web.route import get


class ShownTeam(Value, omit_defaults=False):
    """One team of the roster."""

    name: str
    member: str
    project: str
    policy: str
    description: str


class TeamsView(Value, omit_defaults=False):
    """The roster and the pairs. `problem` says why there is no roster."""

    teams: list[ShownTeam]
    problem: str
    overview: TeamsOverview


async def show_teams(request: WebRequest) -> TeamsView:
    """The teams of this home."""
    home = request.context.home
    roster, problem = _roster(home)
    teams = [
        ShownTeam(
            name=each.name,
            member=each.member,
            project=escape_invisible(each.project),
            policy=each.policy,
            description=escape_invisible(each.description),
        )
        for each in roster.teams.values()
    ]
    overview = await teams_overview(request.context.store, str(home.root / "teams" / "default"))
    return TeamsView(teams=teams, problem=problem, overview=overview)


def _roster(home: Home) -> tuple[Roster, str]:
    file = home.root / "teams.yaml"
    if not file.exists():
        return Roster(), ""
    try:
        return load_roster(file, home=home), ""
    except HoldfastError as error:
        return Roster(), escape_invisible(str(error))


ROUTES = (get("/api/teams", show_teams, TeamsView, "The roster, every pair as it stands, and statistics"),)
