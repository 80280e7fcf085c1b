"""`holdfast policy suggest`: rules from the prompts that a person answered."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.policy_inputs import RecordedCalls
from holdfast.cli.prompts import confirm
from holdfast.cli.terminal.console import Console
from holdfast.core import SessionId, Tool, escape_invisible, pluralize
from holdfast.core.errors import InvalidInput, JournalDamaged
from holdfast.core.events import (
    EscalationAnswered,
    EscalationOpened,
    RecordedEvent,
)
from holdfast.policy import (
    KNOWN_TOOLS,
    NO_FACTS,
    AnsweredPrompt,
    BacktestRunner,
    RecordedCall,
    Request,
    RulePolicy,
    Suggestions,
    suggest,
    targets_of,
)
from holdfast.store import Home, Store, write_private

MAX_PROMPTS = 1_000
"""The newest prompts are enough to learn from, and the search grows with their number."""


class AnsweredPrompts:
    """Collects answered prompts, refused calls and every recorded call from one journal after another."""

    def __init__(self, tools: dict[str, Tool], home: Home) -> None:
        self._tools = tools | KNOWN_TOOLS
        self._calls = RecordedCalls(home.workspace)
        self.prompts: list[AnsweredPrompt] = []
        self.denied: list[Request] = []
        self.calls: list[RecordedCall] = []

    def read(self, recorded: Sequence[RecordedEvent], *, since_ms: int) -> None:
        """Add one journal."""
        opened: dict[str, EscalationOpened] = {}
        for entry in recorded:
            match entry.event:
                case EscalationOpened() as event:
                    opened[event.escalation.id] = event
                case EscalationAnswered() as event if event.escalation in opened and entry.at_ms >= since_ms:
                    escalation = opened[event.escalation].escalation
                    if event.response.arguments is not None:
                        continue  # the person approved another call than the one that was asked about
                    tool = self._tools.get(escalation.call.operation)
                    facts = escalation.decision.facts or NO_FACTS
                    request = Request(
                        call=escalation.call, tool=tool, targets=escalation.targets, facts=facts
                    )
                    is_approved = event.response.verdict == "approve"
                    self.prompts.append(AnsweredPrompt(request, is_approved, escalation.decision.is_staged))
                case _:
                    pass
        for call in self._calls.find(recorded):
            self.calls.append(call)
            if call.decision.verdict == "deny":
                tool = self._tools.get(call.call.operation)
                targets = targets_of(tool, call.call.arguments, call.paths) if tool is not None else ()
                facts = call.decision.facts or NO_FACTS
                self.denied.append(Request(call=call.call, tool=tool, targets=targets, facts=facts))


async def run_suggest(
    base: RulePolicy,
    store: Store,
    home: Home,
    *,
    session: str | None,
    since_ms: int,
    save: str | None,
    is_confirmed: bool,
    is_json: bool,
    console: Console,
) -> int:
    """Show suggested rules, and save them if asked to and confirmed."""
    found = AnsweredPrompts(base.document.tools, home)
    for one in await _sessions(store, session):
        try:
            found.read(await store.read(one), since_ms=since_ms)
        except JournalDamaged as damage:
            console.say(f"{one} is skipped: {damage}", "ask", folds=True)
    result = suggest(base, found.prompts[-MAX_PROMPTS:], denied=found.denied[-MAX_PROMPTS:])
    runner = BacktestRunner(RulePolicy(result.policy), tools=base.document.tools)
    for call in found.calls:
        runner.judge(call)
    past = runner.result()
    text = _policy_text(save or f"{base.name}-suggested", base.name, result)
    if is_json:
        rules = [
            {"name": each.rule.name, "answers": each.answers, "yaml": each.yaml} for each in result.rules
        ]
        console.json(
            {
                "prompts": result.prompts,
                "answered": result.answered,
                "rules": rules,
                "policy": text,
                "backtest": past,
            }
        )
    elif not result.rules:
        console.say(f"{pluralize(len(found.prompts), 'answered prompt')}: no rule to suggest")
    else:
        for each in result.rules:
            console.write(
                f"# answers {pluralize(each.answers, 'approved prompt')}\n{escape_lines(each.yaml)}\n"
            )
        console.say(
            f"{result.answered} of {pluralize(result.prompts, 'approved prompt')} answered; nothing that was denied is allowed"
        )
        console.say(f"{pluralize(past.calls, 'recorded call')}: {past.changed} change, {past.looser} looser")
    if save is None or not result.rules:
        return exit_codes.OK
    return await save_policy(home.policies / f"{save}.yaml", text, is_confirmed=is_confirmed, console=console)


def escape_lines(text: str) -> str:
    """Text with invisible characters shown, line by line."""
    return "\n".join(escape_invisible(line) for line in text.split("\n"))


async def save_policy(path: Path, text: str, *, is_confirmed: bool, console: Console) -> int:
    """Save a policy that the person confirms; an existing one is never replaced."""
    if path.exists():
        raise InvalidInput(f"{path} exists and is not replaced", hint="save under another name: --save NAME")
    if not is_confirmed:
        if not console.is_interactive:
            raise InvalidInput(
                "nothing is saved without a confirmation", hint="add --yes to save without asking"
            )
        if not await confirm(f"save these rules as {path}?", console):
            console.say("nothing was saved")
            return exit_codes.OK
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, text.encode())
    console.say(f"saved; use it with: holdfast -p {path.stem}")
    return exit_codes.OK


def _policy_text(name: str, base: str, result: Suggestions) -> str:
    head = (
        f"policy: {name}\ndescription: {base}, with rules from answered prompts.\nextends: {base}\n\nrules:\n"
    )
    return head + "\n".join(each.yaml for each in result.rules)


async def _sessions(store: Store, session: str | None) -> Iterable[SessionId]:
    if session is not None:
        return [await store.find(session)]
    return [summary.id for summary in await store.sessions()]
