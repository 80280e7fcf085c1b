"""`holdfast policy suggest`: rules from the prompts that a person answered."""

from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.prompts import confirm
from holdfast.cli.terminal.console import Console
from holdfast.core import escape_invisible, pluralize
from holdfast.core.errors import InvalidInput
from holdfast.policy import RulePolicy, Suggestions
from holdfast.services import suggest_rules
from holdfast.store import Home, Store, write_private


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
    found = await suggest_rules(base, store, home, session=session, since_ms=since_ms)
    for one, problem in found.skipped:
        console.say(f"{one} is skipped: {problem}", "ask", folds=True)
    result, past = found.suggestions, found.backtest
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
        console.say(f"{pluralize(found.prompts, 'answered prompt')}: no rule to suggest")
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
