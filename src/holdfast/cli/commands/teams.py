"""Teams of agents that ask each other, each pair in a session of its own.

holdfast teams init                   begin a roster: teams.yaml in the home of Holdfast
holdfast teams add backend /srv/api   one team more; --member, --policy and the rest as in the roster
holdfast teams remove backend         one team less; what was said with it is kept
holdfast teams check                  read the roster and say what is wrong with it, line by line
holdfast teams list                   who is on it
holdfast teams ask backend "why?"     ask a team; --from TEAM asks in a team's name
holdfast teams status                 every pair that ever talked, with messages, tokens and last use
holdfast teams log backend            what was said; --from and --thread name one conversation
holdfast teams usage                  messages, tokens, cost and times of every pair, the busiest first
holdfast teams serve                  as an MCP server over stdio; --http 0 on this machine, with a token a team
"""

import argparse
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.open_teams import open_broker, serve_broker
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.cli.views.team_tables import (
    NO_MESSAGES_YET,
    LogLine,
    log_lines,
    show_log,
    show_pairs,
    show_reply,
    show_roster,
    show_stats,
)
from holdfast.core import JsonObject, pluralize
from holdfast.core.errors import InvalidConfig, InvalidInput, JournalDamaged
from holdfast.store import Home, replace_private, write_private
from holdfast.teams import OUTSIDE, Broker, Caller, Pair, load_roster

_TEMPLATE = """\
settings:
  max_processes: 10
teams: {}
# teams:
#   backend:
#     project: /absolute/path
#     description: what it knows
#     member: claude            # or holdfast, or acp
#     policy: project
#     environment: [ANTHROPIC_API_KEY]
#     asked_by: [external]
"""
_FIELDS = ("member", "policy", "description", "model", "program", "mode", "gate", "color")


def configure(parser: argparse.ArgumentParser) -> None:
    """What is to be done, and with which roster."""
    parser.add_argument("--file", metavar="FILE", help="default: teams.yaml in the home of Holdfast")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("init", help="begin a roster")
    add = verbs.add_parser("add", help="one team more")
    add.add_argument("name", help="what it is called")
    add.add_argument("project", help="the folder it works in")
    for field in _FIELDS:
        add.add_argument(f"--{field}", help=f"{field} in the roster")
    for field in ("arguments", "environment", "asked-by"):
        add.add_argument(
            f"--{field}", nargs="*", metavar="WORD", help=f"{field.replace('-', '_')} in the roster"
        )
    verbs.add_parser("remove", help="one team less").add_argument("name", help="which one")
    verbs.add_parser("check", help="read the roster")
    for name, what in (
        ("list", "who is on the roster"),
        ("status", "every pair that ever talked"),
        ("usage", "figures of every pair"),
    ):
        verbs.add_parser(name, help=what).add_argument("--json", action="store_true", help="JSON on stdout")
    ask = verbs.add_parser("ask", help="ask a team")
    ask.add_argument("team", help="who is asked")
    ask.add_argument("question", help="in words")
    ask.add_argument("--from", dest="sender", default=OUTSIDE, metavar="TEAM", help="in whose name")
    ask.add_argument("--thread", default="", help="a conversation apart from the others")
    ask.add_argument("--seconds", type=float, help="how long to wait")
    ask.add_argument("--json", action="store_true", help="the reply as JSON on stdout")
    log = verbs.add_parser("log", help="what was said")
    log.add_argument("team", nargs="?", help="only with this team as the one that is asked")
    log.add_argument("--from", dest="sender", metavar="TEAM", help="only by this team, or external")
    log.add_argument("--thread", help="only in this thread")
    log.add_argument("--limit", type=int, default=50, metavar="N", help="the latest N (default 50)")
    log.add_argument("--json", action="store_true", help="whole texts as JSON on stdout")
    serve = verbs.add_parser("serve", help="serve the teams over MCP")
    serve.add_argument("--from", dest="sender", default=OUTSIDE, metavar="TEAM", help="who asks over stdio")
    serve.add_argument("--operator", action="store_true", help="give the client over stdio every tool")
    serve.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on loopback; 0 picks a port")


async def run(arguments: argparse.Namespace) -> int:
    """Do it."""
    console, home = Console(), Home.default()
    file = Path(arguments.file).absolute() if arguments.file else home.root / "teams.yaml"
    match arguments.verb:
        case "init":
            return _init(file, home, console)
        case "add" | "remove":
            return _edit(file, arguments, console)
        case "check":
            return _check(file, home, console)
    roster = load_roster(file)
    match arguments.verb:
        case "list":
            console.json(roster) if arguments.json else show_roster(roster, console)
            return exit_codes.OK
    async with open_broker(roster, file, home) as (broker, members):
        match arguments.verb:
            case "ask":
                if arguments.seconds is not None and not arguments.seconds > 0:
                    raise InvalidInput(
                        "--seconds is more than 0", hint="leave it out to wait for a whole turn"
                    )
                with ProgressIndicator(lambda: f"{arguments.team} answers"):
                    reply = await broker.ask(
                        arguments.sender,
                        arguments.team,
                        arguments.question,
                        thread=arguments.thread,
                        seconds=arguments.seconds,
                    )
                return show_reply(reply, console, is_json=arguments.json)
            case "status":
                lines = await broker.sessions()
                console.json(lines) if arguments.json else show_pairs(lines, console)
            case "usage":
                figures = await broker.figures()
                console.json(figures) if arguments.json else show_stats(figures, console)
            case "log":
                said = await _log_lines(broker, arguments, console)
                console.json(said) if arguments.json else show_log(said, console)
            case _:
                caller = Caller(team=arguments.sender, is_operator=arguments.operator)
                await serve_broker(broker, members, console, caller=caller, port=arguments.http)
    return exit_codes.OK


async def _log_lines(broker: Broker, wanted: argparse.Namespace, console: Console) -> list[LogLine]:
    """The latest messages of the pairs that are asked for, oldest first; told are what cannot be read, and that there are none."""
    found: list[LogLine] = []
    is_damaged = False
    for line in (lines := await broker.sessions()):
        pair = Pair.read(line.description)
        if pair is None or wanted.team not in (None, pair.receiver):
            continue
        if wanted.sender in (None, pair.sender) and wanted.thread in (None, pair.thread):
            try:
                found += log_lines(pair, await broker.said(pair))
            except JournalDamaged as damage:
                is_damaged = True
                console.say(f"note: {pair}: {damage}. {damage.hint}", "ask", folds=True)
    if not found and not is_damaged:
        console.say("nothing was said there" if lines else NO_MESSAGES_YET)
    found.sort(key=lambda each: each.at_ms)
    return found[max(0, len(found) - max(wanted.limit, 0)) :]


def _check(file: Path, home: Home, console: Console) -> int:
    from holdfast.policy import load_policy

    roster = load_roster(file, open_policy=lambda policy: load_policy(policy, search=(home.policies,)))
    console.print(f"{file}: {pluralize(len(roster.teams), 'team')}, nothing wrong")
    return exit_codes.OK


def _init(file: Path, home: Home, console: Console) -> int:
    home.prepare()
    try:
        write_private(file, _TEMPLATE.encode())
    except FileExistsError:
        raise InvalidInput(f"{file} is there already", hint="edit it, then: holdfast teams check") from None
    console.print(str(file))
    return exit_codes.OK


def _edit(file: Path, wanted: argparse.Namespace, console: Console) -> int:
    from holdfast.teams import with_team, without_team

    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(
            f"{file}: cannot be read: {error}", hint="make one with: holdfast teams init"
        ) from None
    if wanted.verb == "remove":
        edited = without_team(text, wanted.name, source=str(file))
    else:
        edited = with_team(text, wanted.name, _fields(wanted), source=str(file))
    replace_private(file, edited.encode())
    console.print(f"{file}: {wanted.name} {'removed' if wanted.verb == 'remove' else 'added'}")
    return exit_codes.OK


def _fields(wanted: argparse.Namespace) -> JsonObject:
    """What a new team has in the roster: what was given, and nothing else."""
    fields: JsonObject = {"project": str(Path(wanted.project).absolute())}
    for field in (*_FIELDS, "arguments", "environment", "asked_by"):
        given = getattr(wanted, field)
        if given is not None:
            fields[field] = given
    return fields
