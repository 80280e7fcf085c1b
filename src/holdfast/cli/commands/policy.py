"""Policies: what they decide and why, and what a change would affect.

  holdfast policy show project           print a named policy; without a name, list them
  holdfast policy check --policy mine --call '{"operation": "world.list"}'     the decision on one call
  holdfast policy explain --policy mine --call '{"operation": "world.list"}'   the decision on one call, with every skipped rule
  holdfast policy test mine.yaml         run the examples of the rules
  holdfast policy lint mine.yaml         unreachable or too permissive rules, missing examples
  holdfast policy diff project mine.yaml    what changes from one policy to the other
  holdfast policy backtest mine.yaml     what it would have decided on recorded calls
  holdfast policy suggest --last 30d     rules that would have answered your prompts; nothing is saved unasked
  holdfast policy write "tests may run, nothing may be published"   have a model draft rules, then check them

A policy is a name, a YAML file, or a compiled-policy.json with its tool-annotations.json. A call is
{"operation": "world.read", "arguments": {"path": "a.txt"}}; {"server", "tool", "args"} works too; - reads stdin.
"""

import argparse
import os
import re
import sys
from pathlib import Path
from typing import get_args

import msgspec

from holdfast.cli import exit_codes
from holdfast.cli.commands.prune import age_ms
from holdfast.cli.policy_suggest import run_suggest
from holdfast.cli.policy_write import read_request, run_write
from holdfast.cli.terminal.console import Console
from holdfast.config import load_config
from holdfast.core import (
    LEVELS,
    CallLevels,
    Level,
    SandboxTier,
    SystemClock,
    encode,
    escape_invisible,
    pluralize,
)
from holdfast.core.errors import InvalidInput
from holdfast.policy import (
    Request,
    RulePolicy,
    compare_policies,
    explain,
    lint,
    load_policy,
    named_policies,
    policy_text,
    run_examples,
)
from holdfast.services import backtest_recorded, request_for, with_known_tools
from holdfast.store import Home, open_store

PROGRESS = "evaluating"


def configure(parser: argparse.ArgumentParser) -> None:
    """The actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True)
    show = actions.add_parser("show", help="list the named policies, or print one")
    show.add_argument("name", nargs="?", help="a name or a file")
    for name, what in (
        ("check", "the decision on one call"),
        ("explain", "the decision and its reasons"),
    ):
        action = actions.add_parser(name, help=what)
        action.add_argument(
            "-p", "--policy", required=True, metavar="NAME|FILE", help="the policy that decides"
        )
        action.add_argument("--call", required=True, metavar="JSON", help="the call, or - for stdin")
        action.add_argument(
            "-w", "--workspace", type=Path, default=".", metavar="DIR", help="the workspace of the call"
        )
        action.add_argument(
            "--protected",
            type=Path,
            action="append",
            default=[],
            metavar="DIR",
            help="denied whatever the policy says",
        )
        action.add_argument(
            "--tier",
            choices=get_args(SandboxTier),
            help="the command sandbox that programs run in (default: the one of this machine)",
        )
        action.add_argument(
            "--from",
            dest="origins",
            action="append",
            default=[],
            metavar="ARGUMENT=LEVEL",
            help="where an argument came from: own, known or stranger (default: own)",
        )
        action.add_argument(
            "--author", choices=LEVELS, default="own", help="who wrote the call (default: own)"
        )
    actions.add_parser("test", help="run the examples of the rules").add_argument(
        "policy", help="a name or a file"
    )
    actions.add_parser("lint", help="find probable mistakes").add_argument("policy", help="a name or a file")
    diff = actions.add_parser("diff", help="what changes from one policy to another")
    diff.add_argument("policy", help="the old policy: a name or a file")
    diff.add_argument("other", help="the new policy: a name or a file")
    past = actions.add_parser("backtest", help="what a policy would have decided on recorded calls")
    past.add_argument("policy", help="a name or a file")
    past.add_argument(
        "--session",
        metavar="SESSION",
        help="only this session: id, prefix, last four characters or name (default: all)",
    )
    learn = actions.add_parser("suggest", help="rules from the prompts that you answered")
    learn.add_argument(
        "-p",
        "--policy",
        default="project",
        metavar="NAME|FILE",
        help="the policy to extend (default: project)",
    )
    learn.add_argument(
        "--session",
        metavar="SESSION",
        help="only this session: id, prefix, last four characters or name (default: all)",
    )
    learn.add_argument(
        "--last", type=age_ms, metavar="AGE", help="only answers of this age, such as 12h or 30d"
    )
    learn.add_argument("--save", metavar="NAME", help="save them as a policy of this name, after asking")
    learn.add_argument("-y", "--yes", action="store_true", help="save without asking")
    draft = actions.add_parser("write", help="have a model draft rules from a sentence")
    draft.add_argument("request", nargs="?", metavar="SENTENCE", help="what the agent may do, in your words")
    draft.add_argument("--file", type=Path, metavar="FILE", help="a constitution file instead of a sentence")
    draft.add_argument(
        "-p",
        "--policy",
        default="project",
        metavar="NAME|FILE",
        help="the policy to extend (default: project)",
    )
    draft.add_argument(
        "-m", "--model", metavar="PROVIDER:NAME", help="the model that drafts (default: the configured one)"
    )
    draft.add_argument("--save", metavar="NAME", help="save the policy under this name, after asking")
    draft.add_argument("-y", "--yes", action="store_true", help="confirm the intents and save without asking")
    for action in actions.choices.values():
        action.add_argument("--json", action="store_true", help="print JSON")
        action.add_argument(
            "--annotations", type=Path, metavar="FILE", help="tool-annotations.json of a compiled policy"
        )
        action.add_argument(
            "--value", action="append", default=[], metavar="NAME=TEXT", help="the value of {NAME} in folders"
        )


async def run(arguments: argparse.Namespace) -> int:
    """Run one action."""
    console = Console()
    match arguments.action:
        case "show":
            return _show(arguments, console)
        case "check" | "explain":
            return await _check(arguments, console)
        case "test":
            return _test(arguments, console)
        case "lint":
            return _lint(arguments, console)
        case "diff":
            return _diff(arguments, console)
        case "suggest":
            return await _suggest(arguments, console)
        case "write":
            return await _write(arguments, console)
        case _:
            return await _backtest(arguments, console)


def _show(arguments: argparse.Namespace, console: Console) -> int:
    if arguments.name is None:
        policies = {name: load_policy(name).document.description for name in named_policies()}
        if arguments.json:
            console.json(policies)
        for name, description in () if arguments.json else policies.items():
            console.show(f"{name:<14} {description}", folds=True)
        return exit_codes.OK
    policy = _load(arguments, arguments.name, is_checked=False)
    if arguments.json:
        console.json(policy.document)
    elif policy.document.source in named_policies():
        console.write(policy_text(policy.document.source))
    else:
        console.write(Path(policy.document.source).read_text("utf-8-sig"))
    return exit_codes.OK


async def _check(arguments: argparse.Namespace, console: Console) -> int:
    policy = _load_with_tools(arguments, arguments.policy)
    text = sys.stdin.read() if arguments.call == "-" else arguments.call
    request = await request_for(
        policy,
        text,
        workspace=arguments.workspace,
        protected=arguments.protected,
        tier=arguments.tier,
        home=Home.default(),
    )
    if policy.labels:
        levels = _levels(arguments)
        request = msgspec.structs.replace(
            request, facts=msgspec.structs.replace(request.facts, levels=levels)
        )
    if arguments.action == "explain":
        explanation = explain(policy, request)
        if arguments.json:
            console.json(explanation)
        for line in () if arguments.json else explanation.lines():
            console.show(escape_invisible(line), folds=True)
        _say_tier(arguments, request, console)
        return exit_codes.OK
    decision = policy.judge(request)
    if arguments.json:
        console.json(
            {
                "decision": decision.verdict,
                "rule": decision.rule,
                "source": decision.source,
                "reason": decision.reason,
                "escalated_roles": decision.escalated_roles,
                "facts": request.facts,
            }
        )
    else:
        console.show(
            escape_invisible(
                f"{decision.verdict}  by {decision.rule} ({decision.source}): {decision.reason}"
            ),
            folds=True,
        )
    _say_tier(arguments, request, console)
    return exit_codes.OK


def _levels(arguments: argparse.Namespace) -> CallLevels:
    """The levels that the options give. Raises InvalidInput."""
    found: dict[str, Level] = {}
    for each in arguments.origins:
        name, _, level = each.partition("=")
        if level not in LEVELS:
            raise InvalidInput(f"{each!r} is not ARGUMENT=LEVEL", hint="for example: --from to=stranger")
        found[name] = level
    return CallLevels(author=arguments.author, arguments=found)


def _say_tier(arguments: argparse.Namespace, request: Request, console: Console) -> None:
    tier = request.facts.tier
    if tier is None or arguments.json:
        return
    sandbox = "without a command sandbox" if tier == "none" else f"for the {tier} command sandbox"
    origin = "which is what this machine has" if arguments.tier is None else "as --tier asks"
    console.say(f"judged {sandbox}, {origin}", "dim")


def _test(arguments: argparse.Namespace, console: Console) -> int:
    policy = _load_with_tools(arguments, arguments.policy, is_checked=False)
    results = run_examples(policy)
    failed = [result for result in results if result.is_judged and not result.is_met]
    unknown = sorted({result.example.operation for result in results if not result.is_judged})
    if arguments.json:
        console.json({"examples": len(results), "failed": failed, "unknown_tools": unknown})
        return exit_codes.ERROR if failed else exit_codes.OK
    for result in failed:
        what = "is not decided" if result.is_match_expected else "is decided"
        call = f"{result.example.operation} {encode(result.example.arguments).decode()}"
        place = f"{policy.document.source}:{result.example.line}:{result.example.column}"
        console.print(
            escape_invisible(
                f"{place}: {call} {what} by {result.rule}, "
                f"but {result.decision.verdict} by {result.decision.rule}"
            )
        )
    for operation in unknown:
        console.print(
            escape_invisible(f"not checked: {operation} is not known; add its server with holdfast mcp add")
        )
    console.print(f"{pluralize(len(results), 'example')}, {len(failed)} failed")
    return exit_codes.ERROR if failed else exit_codes.OK


def _lint(arguments: argparse.Namespace, console: Console) -> int:
    findings = lint(_load_with_tools(arguments, arguments.policy, is_checked=False))
    warnings = [finding for finding in findings if finding.level == "warning"]
    if arguments.json:
        console.json(findings)
    else:
        for finding in findings:
            console.print(
                escape_invisible(f"{finding.source}: {finding.level}: {finding.message} [{finding.code}]")
            )
        console.say(
            f"{pluralize(len(warnings), 'warning')}, {pluralize(len(findings) - len(warnings), 'note')}"
        )
    return exit_codes.ERROR if warnings else exit_codes.OK


def _diff(arguments: argparse.Namespace, console: Console) -> int:
    before = _load_with_tools(arguments, arguments.policy, is_checked=False)
    after = _load_with_tools(arguments, arguments.other, is_checked=False)
    result = compare_policies(before, after)
    if arguments.json:
        console.json(result)
        return exit_codes.OK
    for sign, names in (("+", result.added), ("-", result.removed), ("~", result.altered)):
        for name in names:
            console.print(escape_invisible(f"{sign} rule {name}"))
    was, now = ("anywhere" if each is None else ", ".join(each) or "nowhere" for each in result.sandboxes)
    if was != now:
        console.print(f"~ code may run in: {was} -> {now}")
    for one in result.changed:
        mark = "looser  " if one.is_looser else "stricter"
        call = escape_invisible(f"{one.operation} {encode(one.arguments).decode()}")
        where = f"  ({one.tier} sandbox)" if one.tier != "full" else ""
        where += "".join(f"  ({name}: {level})" for name, level in one.levels.arguments.items())
        where += f"  (author: {one.levels.author})" if one.levels.author != "own" else ""
        console.print(f"{mark} {one.before.verdict} -> {one.after.verdict}  {call}{where}")
    console.say(f"{len(result.changed)} of {result.probes} sample calls get another verdict")
    return exit_codes.OK


async def _backtest(arguments: argparse.Namespace, console: Console) -> int:
    policy = _load_with_tools(arguments, arguments.policy)
    home = Home.default()
    home.prepare()
    store = await open_store(home, clock=SystemClock())
    try:
        found = await backtest_recorded(policy, store, home, session=arguments.session)
    finally:
        await store.close()
    for session, problem, hint in found.skipped:
        console.say(f"{session} is skipped: {problem}", "ask", folds=True)
        console.say(f"hint: {hint}", folds=True)
    result = found.backtest
    code = exit_codes.ERROR if found.skipped else exit_codes.OK
    if arguments.json:
        console.json(result)
        return code
    for count in result.counts:
        console.print(
            escape_invisible(f"{count.count:>6}  {count.before} -> {count.after}  {count.operation}")
        )
    read = pluralize(found.sessions, "session")
    console.print(
        f"{pluralize(result.calls, 'call')} of {read}: {result.changed} change, {result.looser} looser"
    )
    return code


async def _suggest(arguments: argparse.Namespace, console: Console) -> int:
    policy = _load_with_tools(arguments, arguments.policy)
    _check_policy_name(arguments.save)
    home, clock = Home.default(), SystemClock()
    home.prepare()
    store = await open_store(home, clock=clock)
    try:
        return await run_suggest(
            policy,
            store,
            home,
            session=arguments.session,
            since_ms=clock.now_ms() - arguments.last if arguments.last is not None else 0,
            save=arguments.save,
            is_confirmed=arguments.yes,
            is_json=arguments.json,
            console=console,
        )
    finally:
        await store.close()


async def _write(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.models import resolve_model

    request = read_request(arguments.request, arguments.file)
    policy = _load_with_tools(arguments, arguments.policy)
    _check_policy_name(arguments.save)
    home = Home.default()
    home.prepare()
    model = arguments.model or load_config(home).model or resolve_model(os.environ)
    if not model:
        raise InvalidInput("no model is configured", hint="name one with -m, or see: holdfast models")
    store = await open_store(home, clock=SystemClock())
    try:
        return await run_write(
            policy,
            request,
            store,
            home,
            model=model,
            save=arguments.save,
            is_confirmed=arguments.yes,
            is_json=arguments.json,
            console=console,
        )
    finally:
        await store.close()


def _check_policy_name(name: str | None) -> None:
    if name is not None and not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise InvalidInput(f"{name!r} is not a name for a policy", hint="use lowercase letters, digits and -")


def _load(arguments: argparse.Namespace, reference: str, *, is_checked: bool = True) -> RulePolicy:
    values = dict(value.split("=", 1) for value in arguments.value if "=" in value)
    search = (Home.default().policies,)
    return load_policy(
        reference, search=search, annotations=arguments.annotations, values=values, is_checked=is_checked
    )


def _load_with_tools(arguments: argparse.Namespace, reference: str, *, is_checked: bool = True) -> RulePolicy:
    policy = _load(arguments, reference, is_checked=is_checked)
    return with_known_tools(policy, Home.default(), is_annotated=arguments.annotations is not None)
