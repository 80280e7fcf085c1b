"""Teams of agents that ask each other, with one session per pair.

holdfast teams init                   create a roster: teams.yaml in Holdfast's data directory
holdfast teams add backend /srv/api   add a team; --member, --policy and so on set its fields
holdfast teams remove backend         remove a team; its conversations are kept
holdfast teams check                  check the roster and name the line of an error
holdfast teams list                   list the teams
holdfast teams ask backend "why?"     ask a team; --from TEAM asks in a team's name
holdfast teams status                 list every pair with its messages and tokens
holdfast teams log backend            show messages and answers; --from and --thread select a conversation
holdfast teams usage                  messages, tokens, cost and times of every pair, busiest first
holdfast teams serve                  serve MCP over stdio; --http 0 serves loopback HTTP, with a token per team
holdfast teams token                  show the tokens of `serve --http`; --revoke replaces them
"""

import argparse
import math
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.open_teams import open_broker, open_shared_broker, serve_teams, token_file
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.cli.views.team_tables import (
    NO_MESSAGES,
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
from holdfast.teams import (
    EXTERNAL_SENDER,
    MAX_TIMEOUT_MS,
    Broker,
    Caller,
    Pair,
    Roster,
    TokenFile,
    load_roster,
    reply_of,
)

_TEMPLATE = """\
settings:
  max_processes: 10
teams: {}
# teams:
#   backend:
#     project: /absolute/path
#     description: what the team knows
#     member: claude            # or holdfast, or acp
#     policy: project
#     environment: [ANTHROPIC_API_KEY]
#     asked_by: [external]
"""
_FIELDS = {
    "member": "what answers for it: holdfast, claude, acp",
    "policy": "the policy that judges what the member wants to do",
    "description": "what it is for; other teams see it",
    "model": "the model of the member",
    "program": "the program of an external member",
    "mode": "the mode of an ACP agent",
    "gate": "which calls of a member pass the gate; asks: those that it asks about",
    "color": "the colour of its name, such as #E91E63",
}
_LISTS = {
    "arguments": "arguments of the program",
    "environment": "environment variables that are passed to the program",
    "asked-by": "the teams that may ask it (default: every team)",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands and their options."""
    parser.add_argument("--file", metavar="FILE", help="default: teams.yaml in Holdfast's data directory")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("init", help="create a roster")
    add = verbs.add_parser("add", help="add a team")
    add.add_argument("name", help="the team's name")
    add.add_argument("project", help="the team's project folder")
    for field, what in _FIELDS.items():
        add.add_argument(f"--{field}", metavar="TEXT", help=what)
    for field, what in _LISTS.items():
        add.add_argument(f"--{field}", nargs="*", metavar="WORD", help=what)
    verbs.add_parser("remove", help="remove a team").add_argument("name", help="the team's name")
    verbs.add_parser("check", help="check the roster")
    for name, what in (
        ("list", "list the teams"),
        ("status", "list every pair that has exchanged messages"),
        ("usage", "statistics of every pair"),
    ):
        verbs.add_parser(name, help=what).add_argument("--json", action="store_true", help="print JSON")
    ask = verbs.add_parser("ask", help="ask a team")
    ask.add_argument("team", help="the team to ask")
    ask.add_argument("question", help="the question")
    ask.add_argument(
        "--from",
        dest="sender",
        default=EXTERNAL_SENDER,
        metavar="TEAM",
        help="the sender (default: external)",
    )
    ask.add_argument("--thread", default="", help="a separate conversation of the same pair")
    ask.add_argument("--seconds", type=float, help="how long to wait")
    ask.add_argument("--json", action="store_true", help="print the reply as JSON")
    log = verbs.add_parser("log", help="show messages and answers")
    log.add_argument("team", nargs="?", help="only messages to this team")
    log.add_argument(
        "--from", dest="sender", metavar="TEAM", help="only messages from this team, or external"
    )
    log.add_argument("--thread", help="only this thread")
    log.add_argument("--limit", type=int, default=50, metavar="N", help="the latest N (default 50)")
    log.add_argument("--json", action="store_true", help="print whole texts as JSON")
    token = verbs.add_parser("token", help="show or revoke the tokens of the HTTP server")
    token.add_argument("name", nargs="?", help="only this team's token, or that of external or operator")
    token.add_argument("--revoke", action="store_true", help="replace the token with a new one")
    token.add_argument("--json", action="store_true", help="print JSON")
    serve = verbs.add_parser("serve", help="serve the teams over MCP")
    serve.add_argument(
        "--from",
        dest="sender",
        default=EXTERNAL_SENDER,
        metavar="TEAM",
        help="the sender for the stdio client",
    )
    serve.add_argument("--operator", action="store_true", help="give the stdio client the operator tools")
    serve.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on loopback; 0 picks a free port")


async def run(arguments: argparse.Namespace) -> int:
    """Run a subcommand."""
    console, home = Console(), Home.default()
    file = Path(arguments.file).absolute() if arguments.file else home.root / "teams.yaml"
    match arguments.verb:
        case "init":
            return _init(file, home, console)
        case "add" | "remove":
            return _edit(file, arguments, console)
        case "check":
            return _check(file, home, console)
    roster = load_roster(file, home=home)
    if arguments.verb in ("ask", "serve"):
        _say_notes(roster, console)
    match arguments.verb:
        case "list":
            console.json(roster) if arguments.json else show_roster(roster, console)
            return exit_codes.OK
        case "token":
            return _token(token_file(roster, file, home), arguments, console)
        case "ask":
            return await _ask(roster, file, home, arguments, console)
        case "serve":
            if arguments.sender != EXTERNAL_SENDER:
                roster.team(arguments.sender)
            caller = Caller(team=arguments.sender, is_operator=arguments.operator)
            async with open_shared_broker(roster, file, home, is_serving=True) as shared:
                kept = token_file(roster, file, home)
                await serve_teams(shared, console, caller=caller, port=arguments.http, kept=kept)
            return exit_codes.OK
    async with open_broker(roster, file, home) as (broker, _):
        match arguments.verb:
            case "status":
                summaries = await broker.sessions()
                if arguments.json:
                    console.json(summaries)
                else:
                    show_pairs(summaries, await broker.stats(), console)
            case "usage":
                stats = await broker.stats()
                console.json(stats) if arguments.json else show_stats(stats, console)
            case _:
                log = await _read_log(broker, arguments, console)
                console.json(log) if arguments.json else show_log(log, console)
    return exit_codes.OK


async def _ask(roster: Roster, file: Path, home: Home, wanted: argparse.Namespace, console: Console) -> int:
    if wanted.seconds is not None and not wanted.seconds > 0:
        raise InvalidInput("--seconds must be more than 0", hint="leave it out to wait for a whole turn")
    if wanted.seconds is not None and wanted.seconds * 1000 > MAX_TIMEOUT_MS:
        raise InvalidInput(
            f"--seconds must be at most {MAX_TIMEOUT_MS // 1000}",
            hint="leave it out to wait for a whole turn",
        )
    pair = roster.pair(wanted.sender, wanted.team, wanted.thread)
    question: JsonObject = {
        "team": pair.receiver,
        "question": wanted.question,
        "thread": pair.thread,
        # 0 waits for a whole turn.
        "timeout": math.ceil(wanted.seconds * 1000) if wanted.seconds is not None else 0,
    }
    async with open_shared_broker(roster, file, home) as shared:
        with ProgressIndicator(lambda: f"{wanted.team} is answering"):
            answer = await shared.call(Caller(team=pair.sender), "teams_ask", question)
    return show_reply(reply_of(answer), console, is_json=wanted.json)


async def _read_log(broker: Broker, wanted: argparse.Namespace, console: Console) -> list[LogLine]:
    """The latest messages of the selected pairs, oldest first. Damaged journals and an empty result are reported."""
    found: list[LogLine] = []
    is_damaged = False
    for line in (summaries := await broker.sessions()):
        pair = Pair.parse(line.description)
        if pair is None or wanted.team not in (None, pair.receiver):
            continue
        if wanted.sender in (None, pair.sender) and wanted.thread in (None, pair.thread):
            try:
                found += log_lines(pair, await broker.history(pair))
            except JournalDamaged as damage:
                is_damaged = True
                console.say(f"note: {pair}: {damage}. {damage.hint}", "ask", folds=True)
    if not found and not is_damaged:
        console.say("no messages match" if summaries else NO_MESSAGES)
    found.sort(key=lambda each: each.at_ms)
    return found[max(0, len(found) - max(wanted.limit, 0)) :]


def _token(kept: TokenFile, wanted: argparse.Namespace, console: Console) -> int:
    tokens = kept.tokens()
    if wanted.name is not None and wanted.name not in tokens:
        raise InvalidInput(
            f"{wanted.name!r} has no token", hint=f"names that have one: {', '.join(sorted(tokens))}"
        )
    names = [wanted.name] if wanted.name is not None else list(tokens)
    if wanted.revoke:
        kept.revoke(*names)
        tokens = kept.tokens()
    shown = {name: tokens[name] for name in names}
    if wanted.json:
        console.json(shown)
    else:
        for name, token in shown.items():
            console.print(f"{name:<16} {token}")
    return exit_codes.OK


def _check(file: Path, home: Home, console: Console) -> int:
    from holdfast.policy import load_policy

    roster = load_roster(
        file, home=home, open_policy=lambda policy: load_policy(policy, search=(home.policies,))
    )
    _say_notes(roster, console)
    console.print(f"{file}: {pluralize(len(roster.teams), 'team')}, no errors")
    return exit_codes.OK


def _say_notes(roster: Roster, console: Console) -> None:
    for note in roster.notes:
        console.say(f"note: {note}", "ask", folds=True)


def _init(file: Path, home: Home, console: Console) -> int:
    home.prepare()
    try:
        write_private(file, _TEMPLATE.encode())
    except FileExistsError:
        raise InvalidInput(f"{file} already exists", hint="edit it, then: holdfast teams check") from None
    console.print(str(file))
    return exit_codes.OK


def _edit(file: Path, wanted: argparse.Namespace, console: Console) -> int:
    from holdfast.teams import with_team, without_team

    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(
            f"{file}: cannot be read: {error}", hint="create one with: holdfast teams init"
        ) from None
    if wanted.verb == "remove":
        edited = without_team(text, wanted.name, source=str(file))
    else:
        edited = with_team(text, wanted.name, _fields(wanted), source=str(file))
    replace_private(file, edited.encode())
    console.print(f"{file}: {wanted.name} {'removed' if wanted.verb == 'remove' else 'added'}")
    return exit_codes.OK


def _fields(wanted: argparse.Namespace) -> JsonObject:
    """The roster fields of a new team: only those given on the command line."""
    fields: JsonObject = {"project": str(Path(wanted.project).absolute())}
    for field in (*_FIELDS, "arguments", "environment", "asked_by"):
        given = getattr(wanted, field)
        if given is not None:
            fields[field] = given
    return fields
