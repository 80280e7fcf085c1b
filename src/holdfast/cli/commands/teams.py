"""Teams of agents that ask each other, each pair in a session of its own.

holdfast teams init                   begin a roster: teams.yaml in the home of Holdfast
holdfast teams check                  read the roster and say what is wrong with it, line by line
holdfast teams list                   who is on it
holdfast teams ask backend "why?"     ask a team; --from TEAM asks in a team's name
holdfast teams status                 every pair that ever talked, with messages, tokens and last use
holdfast teams serve                  as an MCP server over stdio; --http 0 on this machine, with a token a team
"""

import argparse
import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.app import Runtime
from holdfast.cli import exits
from holdfast.cli.console import Console, visible
from holdfast.config import load_config
from holdfast.core import Error, SessionId, SystemClock, digest, is_success
from holdfast.core.errors import InvalidInput
from holdfast.policy import load_policy
from holdfast.session import Session
from holdfast.store import Home
from holdfast.teams import (
    OUTSIDE,
    Caller,
    Callers,
    Reply,
    Roster,
    Staff,
    Switchboard,
    Team,
    introduction,
    load_roster,
    serve_stdio,
    serving_http,
)

_TEMPLATE = """\
settings:
  max_processes: 10
teams: {}
# teams:
#   backend:
#     project: /absolute/path
#     description: what it knows
#     member: claude            # or holdfast
#     policy: project
#     environment: [ANTHROPIC_API_KEY]
#     asked_by: [external]
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """What is to be done, and with which roster."""
    parser.add_argument("--file", metavar="FILE", help="default: teams.yaml in the home of Holdfast")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("init", help="begin a roster")
    verbs.add_parser("check", help="read the roster")
    for name, what in (("list", "who is on the roster"), ("status", "every pair that ever talked")):
        verbs.add_parser(name, help=what).add_argument("--json", action="store_true", help="JSON on stdout")
    ask = verbs.add_parser("ask", help="ask a team")
    ask.add_argument("team", help="who is asked")
    ask.add_argument("question", help="in words")
    ask.add_argument("--from", dest="sender", default=OUTSIDE, metavar="TEAM", help="in whose name")
    ask.add_argument("--thread", default="", help="a conversation apart from the others")
    ask.add_argument("--seconds", type=float, help="how long to wait")
    ask.add_argument("--json", action="store_true", help="the reply as JSON on stdout")
    serve = verbs.add_parser("serve", help="serve the teams over MCP")
    serve.add_argument("--from", dest="sender", default=OUTSIDE, metavar="TEAM", help="who asks over stdio")
    serve.add_argument("--operator", action="store_true", help="give the client over stdio every tool")
    serve.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on loopback; 0 picks a port")


async def run(arguments: argparse.Namespace) -> int:
    """Do it."""
    console, home = Console(), Home.default()
    file = Path(arguments.file).absolute() if arguments.file else home.root / "teams.yaml"
    if arguments.verb == "init":
        return _begin(file, home, console)
    roster = load_roster(file)
    if arguments.verb == "check":
        console.print(f"{file}: {len(roster.teams)} teams, nothing wrong")
        return exits.OK
    if arguments.verb == "list":
        return _list(roster, console, arguments.json)
    async with opened_board(roster, file, home) as (board, staff):
        if arguments.verb == "status":
            return await _status(board, console, arguments.json)
        if arguments.verb == "ask":
            reply = await board.ask(
                arguments.sender,
                arguments.team,
                arguments.question,
                thread=arguments.thread,
                seconds=arguments.seconds,
            )
            return _show(reply, console, arguments.json)
        await _serve(board, staff, arguments, console)
    return exits.OK


@asynccontextmanager
async def opened_board(roster: Roster, file: Path, home: Home) -> AsyncIterator[tuple[Switchboard, Staff]]:
    """The switchboard of a roster, with everything below it."""
    clock = SystemClock()
    runtime = await Runtime.start(home=home.root, settings=load_config(home))
    try:
        name = "default" if file == home.root / "teams.yaml" else digest(str(file))[:12]
        folder = home.root / "teams" / name

        async def open_session(session: SessionId, team: Team) -> Session:
            return await runtime.resume(session, model=team.model or None, policy=team.policy)

        staff = Staff(
            roster=roster,
            folder=folder,
            home=home,
            store=runtime.store,
            clock=clock,
            open_policy=lambda policy: load_policy(policy, search=(home.policies,)),
            open_session=open_session,
            environ=os.environ,
        )
        board = Switchboard(roster=roster, folder=folder, store=runtime.store, staff=staff, clock=clock)
        async with board:
            yield board, staff
    finally:
        await runtime.close()


async def _serve(board: Switchboard, staff: Staff, arguments: argparse.Namespace, console: Console) -> None:
    if arguments.http is None:
        if arguments.sender != OUTSIDE:
            board.roster.team(arguments.sender)
        await serve_stdio(board, Caller(team=arguments.sender, is_operator=arguments.operator))
        return
    callers = Callers()
    tokens = {name: callers.admit(Caller(team=name)) for name in (*board.roster.teams, OUTSIDE)}
    tokens["operator"] = callers.admit(Caller(is_operator=True))
    async with serving_http(board, callers, port=arguments.http) as url:
        staff.introduce = lambda pair, session: introduction(
            url, callers.admit(Caller(team=pair.receiver, within=session))
        )
        console.json({"url": url, "tokens": tokens})
        await asyncio.get_running_loop().create_future()


def _begin(file: Path, home: Home, console: Console) -> int:
    home.prepare()
    try:
        with open(file, "x", encoding="utf-8") as draft:
            draft.write(_TEMPLATE)
    except FileExistsError:
        raise InvalidInput(f"{file} is there already", hint="edit it, then: holdfast teams check") from None
    console.print(str(file))
    return exits.OK


def _list(roster: Roster, console: Console, is_json: bool) -> int:
    if is_json:
        console.json(roster)
        return exits.OK
    for team in roster.teams.values():
        console.print(
            f"{team.name:<16} {team.member:<9} {team.project}  {visible(team.description)}".rstrip()
        )
    return exits.OK


async def _status(board: Switchboard, console: Console, is_json: bool) -> int:
    lines = await board.sessions()
    if is_json:
        console.json(lines)
        return exits.OK
    for line in lines:
        console.print(f"{line.description:<40} {line.turns:>6} messages {line.tokens:>10,} tokens  {line.id}")
    return exits.OK


def _show(reply: Reply, console: Console, is_json: bool) -> int:
    if is_json:
        console.json(reply)
    else:
        for note in reply.notes:
            console.say(f"note: {note}", "ask")
        console.print(visible(reply.text))
        if isinstance(reply.outcome, Error):
            console.say(f"holdfast: {reply.outcome.message}", "bad")
            if reply.outcome.hint:
                console.say(f"hint: {reply.outcome.hint}")
    return exits.OK if is_success(reply.outcome) else exits.ERROR
