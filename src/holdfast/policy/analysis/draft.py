"""Drafts of policies that a model wrote. Everything here is deterministic: a draft is compiled, checked and compared, never trusted.

A draft has an intent list and rules. The person confirms the intents, each with what it covers; then every rule of the draft that
allows or stages must lie within one of them: in its operations, paths, hosts, commands and arguments.
"""

from collections.abc import Sequence

import msgspec

from holdfast.core import STRICTNESS, JsonObject, Value, Verdict, encode, restricts
from holdfast.core.errors import InvalidPolicy
from holdfast.policy.analysis.examples import check_examples
from holdfast.policy.analysis.subsumption import subsumes
from holdfast.policy.document import PolicyDocument, Rule
from holdfast.policy.evaluate import RulePolicy


class Intent(Value):
    """One thing that the person wants, in words, with the verdict and the calls that it covers."""

    verdict: Verdict
    operations: tuple[str, ...]
    means: str
    only: JsonObject = msgspec.field(default_factory=dict)
    """Tests as in a rule, such as `paths`. Without any, it covers every call of the operations."""

    @property
    def covers(self) -> str:
        """What it covers, in words that come from the tests and not from the model."""
        tests = "; ".join(f"{name} {encode(value).decode()}" for name, value in self.only.items())
        return f"{', '.join(self.operations)} {f'only {tests}' if tests else '(any call)'}"


class Draft(Value):
    """What a model answers: the intents, and the `rules:` section as YAML text."""

    intents: tuple[Intent, ...]
    rules: str


DRAFT_INSTRUCTIONS = """You draft access rules for an agent. Answer with one JSON object and nothing else:
{"intents": [{"verdict": "allow|stage|escalate|deny", "operations": ["group.verb"], "only": {tests}, "means": "one sentence"}], "rules": "YAML"}
`rules` is a YAML list. A rule: {name, one of allow|stage|escalate|deny: [operations], because, examples: {matches: [{op: {args}}], misses: [...]}}
and tests: paths (globs in the workspace), within (absolute folders), inside, outside, executes, hosts, names, commands, tier, arguments
({place: {equals|one_of|prefix|matches|glob|at_least|at_most|length}}). Every rule needs an example that it matches. Deny what is not mentioned.
`only` has the tests that limit an intent, such as {"paths": ["src/**"]}; a rule that allows must have them too, or narrower ones."""


def read_draft(answer: str) -> Draft:
    """The draft in a model's answer. Raises InvalidPolicy."""
    start, end = answer.find("{"), answer.rfind("}")
    try:
        return msgspec.json.decode(answer[start : end + 1].encode(), type=Draft)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidPolicy(
            f"the model's answer is not a draft: {error}", hint="ask again, or write the rules yourself"
        ) from None


def draft_text(name: str, base: str, draft: Draft) -> str:
    """The draft as a policy file that extends another policy."""
    rules = "\n".join(f"  {line}" for line in draft.rules.strip().splitlines())
    return f"policy: {name}\ndescription: {base}, with rules drafted by a model and confirmed.\nextends: {base}\n\nrules:\n{rules}\n"


def check_draft(document: PolicyDocument, intents: Sequence[Intent], *, base: PolicyDocument) -> RulePolicy:
    """The policy of a draft. Raises InvalidPolicy if a rule reaches beyond the intents, replaces a rule of the base, or fails an
    example."""
    inherited = {rule.name for rule in base.rules}
    allowed = _intent_rules(intents)
    for rule in document.rules:
        if rule.is_inherited:
            continue
        if rule.name in inherited:
            raise InvalidPolicy(
                f"the rule {rule.name!r} would replace a rule of {base.name!r}",
                source=rule.source,
                hint="ask again, or write the rules yourself",
            )
        if rule.is_restrictive:
            continue
        for operation in rule.operations:
            single = msgspec.structs.replace(rule, operations=(operation,))
            if not any(_lies_within(single, intent) for intent in allowed):
                raise InvalidPolicy(
                    f"the rule {rule.name!r} allows more of {operation} than a confirmed intent covers",
                    source=rule.source,
                    hint="ask again, or write the rules yourself",
                )
    policy = RulePolicy(document)
    check_examples(policy)
    return policy


def _intent_rules(intents: Sequence[Intent]) -> tuple[Rule, ...]:
    """The intents that allow or stage, as rules. Raises InvalidPolicy if their tests are not those of a rule."""
    from holdfast.policy.parser import parse_policy  # here, because the YAML library is slow to load

    rules = [
        {"name": f"intent-{number}", intent.verdict: list(intent.operations), **intent.only}
        for number, intent in enumerate(intents, 1)
        if not restricts(intent.verdict)
    ]
    text = encode({"policy": "intents", "rules": rules}).decode()
    return parse_policy(text, source="intents").rules


def _lies_within(rule: Rule, intent: Rule) -> bool:
    """Whether an intent covers every call that a rule matches. False if that is not certain."""
    if STRICTNESS[rule.verdict] < STRICTNESS[intent.verdict]:
        return False
    if rule.paths is not None and intent.paths is not None:
        wide = intent.paths.globs
        globs = tuple(
            next((each for each in wide if _is_below(glob, each)), glob) for glob in rule.paths.globs
        )
        rule = msgspec.structs.replace(rule, paths=msgspec.structs.replace(rule.paths, globs=globs))
    return subsumes(intent, rule)


def _is_below(glob: str, wide: str) -> bool:
    """Whether everything that a glob matches lies in the folder of another, `folder/**`, which has no dot files."""
    folder = wide.removesuffix("**")
    has_only_plain_names = not any(part.startswith(".") for part in glob.split("/"))
    return (
        wide.endswith("/**")
        and glob.startswith(folder)
        and has_only_plain_names
        and not set("*?[]{}!\\") & set(folder)
        and not set("[]{}!\\") & set(glob)
    )
