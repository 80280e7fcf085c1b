"""Drafts of policies that a model wrote. Everything here is deterministic: a draft is compiled, checked and compared, never trusted.

A draft has an intent list and rules. The person confirms the intents; then no rule of the draft may allow or stage an operation
that no confirmed intent names.
"""

from collections.abc import Sequence

import msgspec

from holdfast.core import Value, Verdict, restricts
from holdfast.core.errors import InvalidPolicy
from holdfast.policy.analysis.examples import check_examples
from holdfast.policy.analysis.subsumption import subsumes_operation
from holdfast.policy.document import PolicyDocument
from holdfast.policy.evaluate import RulePolicy


class Intent(Value):
    """One thing that the person wants, in words, with the verdict and the operations that it covers."""

    verdict: Verdict
    operations: tuple[str, ...]
    means: str


class Draft(Value):
    """What a model answers: the intents, and the `rules:` section as YAML text."""

    intents: tuple[Intent, ...]
    rules: str


DRAFT_INSTRUCTIONS = """You draft access rules for an agent. Answer with one JSON object and nothing else:
{"intents": [{"verdict": "allow|stage|escalate|deny", "operations": ["group.verb"], "means": "one sentence"}], "rules": "YAML"}
`rules` is a YAML list. A rule: {name, one of allow|stage|escalate|deny: [operations], because, examples: {matches: [{op: {args}}], misses: [...]}}
and tests: paths (globs in the workspace), within (absolute folders), inside, outside, executes, hosts, names, commands, tier, arguments
({place: {equals|one_of|prefix|matches|glob|at_least|at_most|length}}). Every rule needs an example that it matches. Deny what is not mentioned."""


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
    allowed = [
        pattern for intent in intents if not restricts(intent.verdict) for pattern in intent.operations
    ]
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
            if not any(subsumes_operation(pattern, operation) for pattern in allowed):
                raise InvalidPolicy(
                    f"the rule {rule.name!r} allows {operation}, which no confirmed intent names",
                    source=rule.source,
                    hint="ask again, or write the rules yourself",
                )
    policy = RulePolicy(document)
    check_examples(policy)
    return policy
