"""Routes of policies: rules with their place, why a call is judged as it is, what a policy would have decided, and suggestions.

Nothing here writes: a policy changes in an editor.
"""

from pathlib import Path

from holdfast.core import Call, Value, Verdict, encode, escape_invisible
from holdfast.core.errors import InvalidInput
from holdfast.policy import (
    ArgumentTest,
    LintFinding,
    Rule,
    RulePolicy,
    explain,
    lint,
    load_policy,
    named_policies,
)
from holdfast.services import backtest_recorded, request_for, suggest_rules, with_known_tools
from holdfast.session import workspace_of
from holdfast.store import Home
from holdfast.web.context import WebRequest
from holdfast.web.route import get


class ShownRule(Value, omit_defaults=False):
    """One rule: what it decides, where it stands, and why."""

    name: str
    verdict: Verdict
    operations: tuple[str, ...]
    source: str
    """The file and the line."""
    reason: str
    tests: tuple[str, ...]
    """Its conditions in words, one a line; all of them must hold."""


class ShownPolicy(Value, omit_defaults=False):
    """A policy with its rules in the order in which they are tried, and what its check finds."""

    name: str
    description: str
    rules: list[ShownRule]
    findings: list[LintFinding]


class PolicyNames(Value, omit_defaults=False):
    """The policies that can be named."""

    names: list[str]


class Explained(Value, omit_defaults=False):
    """The verdict on a call, and the reasons, line by line, as `holdfast policy explain` prints them."""

    verdict: Verdict
    call: Call
    lines: list[str]


class ShownChange(Value, omit_defaults=False):
    """How many recorded calls of an operation would get another verdict."""

    operation: str
    before: Verdict
    after: Verdict
    count: int


class BacktestView(Value, omit_defaults=False):
    """What a policy would have decided on the recorded calls of all sessions."""

    calls: int
    changed: int
    looser: int
    changes: list[ShownChange]
    sessions: int
    skipped: int
    """Sessions that could not be read."""


class ShownSuggestion(Value, omit_defaults=False):
    """A rule that would have answered prompts, as it is written in a policy file."""

    name: str
    answers: int
    yaml: str


class SuggestionsView(Value, omit_defaults=False):
    """Rules from the prompts that a person answered; none allows what was denied."""

    prompts: int
    answered: int
    rules: list[ShownSuggestion]


async def list_policies(request: WebRequest) -> PolicyNames:
    """The named policies, and those of this home."""
    own = sorted(path.stem for path in request.context.home.policies.glob("*.yaml"))
    return PolicyNames(names=[*own, *(name for name in named_policies() if name not in own)])


async def show_policy(request: WebRequest) -> ShownPolicy:
    """One policy."""
    policy = _load(request.context.home, request.path["policy"])
    rules = [
        ShownRule(
            name=escape_invisible(rule.name),
            verdict=rule.verdict,
            operations=rule.operations,
            source=escape_invisible(rule.source),
            reason=escape_invisible(rule.reason),
            tests=_tests(rule),
        )
        for rule in policy.document.rules
    ]
    description = escape_invisible(policy.document.description)
    return ShownPolicy(name=policy.name, description=description, rules=rules, findings=list(lint(policy)))


def _tests(rule: Rule) -> tuple[str, ...]:
    """The conditions of a rule in the words of a policy file."""
    found: list[str] = []
    if rule.roles and rule.paths is None:
        found.append(f"applies to: {', '.join(rule.roles)}")
    if (paths := rule.paths) is not None:
        places = [
            *(["inside the workspace"] if paths.inside else []),
            *(["outside the workspace"] if paths.outside else []),
        ]
        places += [*(f"in {folder}" for folder in paths.folders), *paths.globs]
        found.append(f"{', '.join(paths.roles or ('paths',))}: {', '.join(places)}")
    if rule.hosts is not None:
        found.append(f"hosts: {', '.join(rule.hosts.patterns)}")
    found += [f"{', '.join(test.roles)}: {', '.join(test.names)}" for test in rule.names]
    if rule.commands is not None:
        commands = [" ".join("|".join(words) for words in prefix) for prefix in rule.commands.prefixes]
        found.append(f"commands: {', '.join(commands)}")
    if rule.tiers:
        found.append(f"in the sandbox: {', '.join(rule.tiers)}")
    found += [f"argument {_argument(test)}" for test in rule.arguments]
    if rule.takes_no_arguments:
        found.append("without arguments")
    found += [f"{test.role}: from {test.level} or better" for test in rule.levels]
    return tuple(map(escape_invisible, found))


def _argument(test: ArgumentTest) -> str:
    conditions = {
        "one of": ", ".join(encode(value).decode() for value in test.one_of),
        "begins with": ", ".join(test.prefixes),
        "matches": ", ".join((*test.patterns, *test.globs)),
        "at least": test.at_least,
        "at most": test.at_most,
        "shortest": test.shortest,
        "longest": test.longest,
    }
    return f"{test.argument}: " + ", ".join(
        f"{name} {value}" for name, value in conditions.items() if value not in (None, "")
    )


async def explain_call(request: WebRequest) -> Explained:
    """Judge a call and explain the verdict; nothing is executed."""
    context, call, reference = request.context, request.query.get("call", ""), request.query.get("session")
    policy = _load(context.home, request.path["policy"])
    workspace = Path.cwd()
    if reference:
        session = await context.store.find(reference)
        workspace = Path(workspace_of(await context.store.read(session)) or context.home.workspace(session))
    asked = await request_for(policy, call, workspace=workspace, protected=(), tier=None, home=context.home)
    explained = explain(policy, asked)
    lines = [escape_invisible(line) for line in explained.lines()]
    return Explained(verdict=explained.decision.verdict, call=asked.call, lines=lines)


async def backtest_policy(request: WebRequest) -> BacktestView:
    """Judge every recorded call with a policy."""
    context = request.context
    policy = _load(context.home, request.path["policy"])
    found = await backtest_recorded(policy, context.store, context.home)
    changes = [
        ShownChange(
            operation=escape_invisible(each.operation), before=each.before, after=each.after, count=each.count
        )
        for each in found.backtest.counts
    ]
    return BacktestView(
        calls=found.backtest.calls,
        changed=found.backtest.changed,
        looser=found.backtest.looser,
        changes=changes,
        sessions=found.sessions,
        skipped=len(found.skipped),
    )


async def suggest_for_policy(request: WebRequest) -> SuggestionsView:
    """Rules that would have answered what a person approved."""
    context = request.context
    policy = _load(context.home, request.path["policy"])
    found = (await suggest_rules(policy, context.store, context.home)).suggestions
    rules = [
        ShownSuggestion(
            name=escape_invisible(each.rule.name), answers=each.answers, yaml=escape_invisible(each.yaml)
        )
        for each in found.rules
    ]
    return SuggestionsView(prompts=found.prompts, answered=found.answered, rules=rules)


def _load(home: Home, name: str) -> RulePolicy:
    # A name only: a path would let a browser ask what files there are.
    if not name or not all(letter.isalnum() or letter in "-_" for letter in name):
        raise InvalidInput(f"{name!r} is not the name of a policy", hint="list them: holdfast policy show")
    return with_known_tools(
        load_policy(name, search=(home.policies,), is_checked=False), home, is_annotated=False
    )


ROUTES = (
    get("/api/policies", list_policies, PolicyNames, "The policies that can be named"),
    get("/api/policies/{policy}", show_policy, ShownPolicy, "A policy: its rules with file and line"),
    get(
        "/api/policies/{policy}/explain",
        explain_call,
        Explained,
        "The verdict on a call, and why; with a session, in its workspace",
        query=("call", "session"),
    ),
    get(
        "/api/policies/{policy}/backtest",
        backtest_policy,
        BacktestView,
        "What a policy would have decided on the recorded calls",
    ),
    get(
        "/api/policies/{policy}/suggestions",
        suggest_for_policy,
        SuggestionsView,
        "Rules from the prompts that a person answered",
    ),
)
