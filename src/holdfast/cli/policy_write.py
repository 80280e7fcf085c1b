"""`holdfast policy write`: a model drafts rules from a sentence; everything after the draft is deterministic."""

from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.policy_suggest import escape_lines, save_policy
from holdfast.cli.prompts import confirm
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.core import UserMessage, encode, escape_invisible, pluralize
from holdfast.core.errors import InvalidInput, JournalDamaged
from holdfast.policy import (
    DRAFT_INSTRUCTIONS,
    KNOWN_TOOLS,
    Backtest,
    BacktestRunner,
    Intent,
    RulePolicy,
    check_draft,
    compare_policies,
    draft_text,
    lint,
    parse_policy_text,
    read_draft,
)
from holdfast.services import RecordedCalls, with_known_tools
from holdfast.store import Home, Store

MAX_CHARACTERS = 50_000
MAX_SHOWN = 20
"""Sample calls that are shown with another verdict; --json has all of them."""


async def run_write(
    base: RulePolicy,
    request: str,
    store: Store,
    home: Home,
    *,
    model: str,
    save: str | None,
    is_confirmed: bool,
    is_json: bool,
    console: Console,
) -> int:
    """Draft, confirm the intents, check, show what would change, and save if asked to."""
    draft = read_draft(await _ask(model, request, base, home))
    if not is_json:
        console.say("the model understood:")
        for intent in draft.intents:
            console.print(_shown(intent))
    if save is not None and not is_confirmed:
        if not console.is_interactive:
            raise InvalidInput(
                "nothing is saved without a confirmation", hint="add --yes to confirm in advance"
            )
        if not await confirm("is this what you want? Rules can only be narrower.", console):
            console.say("nothing was saved")
            return exit_codes.OK
    text = draft_text(save or f"{base.name}-draft", base.name, draft)
    policy = check_draft(
        parse_policy_text(text, source="draft", search=(home.policies,)), draft.intents, base=base.document
    )
    policy = with_known_tools(policy, home, is_annotated=False)
    findings, changes = lint(policy), compare_policies(base, policy)
    past = await _backtest(policy, store, home)
    if is_json:
        console.json(
            {"intents": draft.intents, "policy": text, "lint": findings, "diff": changes, "backtest": past}
        )
    else:
        console.write(escape_lines(text))
        for finding in findings:
            console.print(escape_invisible(f"{finding.level}: {finding.message} [{finding.code}]"))
        for one in changes.changed[:MAX_SHOWN]:
            mark = "looser  " if one.is_looser else "stricter"
            call = escape_invisible(f"{one.operation} {encode(one.arguments).decode()}")
            console.print(f"{mark} {one.before.verdict} -> {one.after.verdict}  {call}")
        console.say(f"{len(changes.changed)} of {changes.probes} sample calls get another verdict")
        console.say(f"{pluralize(past.calls, 'recorded call')}: {past.changed} change, {past.looser} looser")
    if save is None:
        return exit_codes.OK
    return await save_policy(home.policies / f"{save}.yaml", text, is_confirmed=is_confirmed, console=console)


def read_request(sentence: str | None, file: Path | None) -> str:
    """The sentence, or the text of a constitution file. Raises InvalidInput."""
    if (sentence is None) == (file is None):
        raise InvalidInput(
            "say what the agent may do", hint='holdfast policy write "tests may run", or --file FILE'
        )
    if sentence is not None:
        return sentence
    assert file is not None
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"{file} has more than {MAX_CHARACTERS:,} characters")
    return text


async def _ask(name: str, request: str, base: RulePolicy, home: Home) -> str:
    from holdfast.models import Prompt, create_model

    operations = ", ".join(sorted(KNOWN_TOOLS.keys() | base.document.tools.keys()))
    question = f"The operations are: {operations}.\nThe rules extend the policy {base.name!r}.\nThe person wants:\n{request}"
    model = create_model(name, models_folder=home.models)
    try:
        with ProgressIndicator(lambda: f"asking {name}"):
            prompt = Prompt(
                system=DRAFT_INSTRUCTIONS, messages=(UserMessage(text=question),), max_tokens=4000
            )
            return (await model.ask(prompt, lambda _: None)).message.text
    finally:
        await model.close()


async def _backtest(policy: RulePolicy, store: Store, home: Home) -> Backtest:
    runner, calls = BacktestRunner(policy, tools=policy.document.tools), RecordedCalls(home.workspace)
    unread: list[str] = []
    for summary in await store.sessions():
        try:
            for call in calls.find(await store.read(summary.id)):
                runner.judge(call)
        except JournalDamaged:
            unread.append(summary.id)
    return runner.result(unread=unread)


def _shown(intent: Intent) -> str:
    return escape_invisible(f"  {intent.verdict:<9}{intent.covers}: {intent.means}")
