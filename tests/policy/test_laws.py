"""What holds for every policy and every call, whatever they are."""

import itertools
import random
from collections import Counter

import msgspec
import pytest
from tests.policy.random_policies import (
    random_document,
    random_request,
    random_rule,
    random_rule_about_mail,
    random_rule_about_moves,
    random_rule_about_programs,
    random_rule_about_zones,
)
from tests.policy.reference_policy import judge

from holdfast.core import STRICTNESS, PathTarget
from holdfast.policy import PolicyDocument, Request, RulePolicy, combine, lint, most_permissive_verdict
from holdfast.policy.analysis.subsumption import Subsumption, subsumes

CALLS_A_POLICY = 20


def pairs(seed: int, policies: int) -> list[tuple[PolicyDocument, list[Request]]]:
    rng = random.Random(seed)
    return [
        (random_document(rng), [random_request(rng) for _ in range(CALLS_A_POLICY)]) for _ in range(policies)
    ]


def crowds(seed: int, policies: int) -> list[tuple[PolicyDocument, list[Request]]]:
    """Policies about one tool that takes several values of several roles, and calls of it."""
    rng = random.Random(seed)
    made: list[tuple[PolicyDocument, list[Request]]] = []
    for _ in range(policies):
        operation, random_rule_about = rng.choice(
            [
                ("mail.send", random_rule_about_mail),
                ("fs.move", random_rule_about_moves),
                ("shell.run", random_rule_about_programs),
                ("time.convert", random_rule_about_zones),
            ]
        )
        rules = tuple(random_rule_about(rng, number) for number in range(rng.randint(1, 4)))
        calls = [random_request(rng, operation) for _ in range(CALLS_A_POLICY)]
        made.append((PolicyDocument(name="crowd", rules=rules), calls))
    return made


def judged_at_once(seed: int, policies: int) -> Counter[str]:
    """Check that many paths get the verdicts that each of them gets alone, and count the verdicts."""
    rng, seen = random.Random(seed), Counter[str]()
    for _ in range(policies):
        policy = RulePolicy(random_document(rng))
        for operation in ("fs.read", "fs.edit", "fs.move"):
            requests = [random_request(rng, operation) for _ in range(CALLS_A_POLICY)]
            request = requests[0]
            paths = [t for each in requests for t in each.targets if isinstance(t, PathTarget)]
            alone = []
            for path in paths:
                arguments = {**request.call.arguments, path.argument: path.location.given}
                call = msgspec.structs.replace(request.call, arguments=arguments)
                alone.append(
                    policy.judge(msgspec.structs.replace(request, call=call, targets=(path,))).verdict
                )
            assert policy.judge_paths(request, paths) == alone, (policy.document, request)
            seen.update(alone)
    return seen


def test_many_paths_at_once_get_the_verdicts_that_each_gets_alone() -> None:
    assert {"allow", "deny", "escalate", "stage"} <= set(judged_at_once(1, 30))


@pytest.mark.soak
def test_very_many_paths_at_once_get_the_verdicts_that_each_gets_alone() -> None:
    judged_at_once(2, 600)


def agree(seed: int, policies: int) -> None:
    for document, requests in pairs(seed, policies) + crowds(seed, policies // 4):
        policy = RulePolicy(document)
        for request in requests:
            decision = policy.judge(request)
            assert decision.verdict == judge(document, request), (document, request, decision)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.promise("P02")
def test_two_evaluators_agree(seed: int) -> None:
    agree(seed, 150)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 150))
def test_two_evaluators_agree_a_million_times(seed: int) -> None:
    agree(seed, 1000)


def test_the_random_calls_meet_every_verdict_often() -> None:
    verdicts = [
        RulePolicy(document).judge(request).verdict
        for document, requests in pairs(0, 150)
        for request in requests
    ]
    for verdict in STRICTNESS:
        assert verdicts.count(verdict) > len(verdicts) / 40, verdict


@pytest.mark.promise("P02")
def test_adding_a_deny_anywhere_never_allows_more() -> None:
    rng = random.Random(7)
    for document, requests in pairs(7, 100):
        deny = msgspec.structs.replace(random_rule(rng, 99), verdict="deny")
        place = rng.randint(0, len(document.rules))
        rules = (*document.rules[:place], deny, *document.rules[place:])
        before, after = RulePolicy(document), RulePolicy(msgspec.structs.replace(document, rules=rules))
        for request in requests:
            was, now = before.judge(request).verdict, after.judge(request).verdict
            assert STRICTNESS[now] >= STRICTNESS[was], (deny, request)


def test_reordering_neighbours_of_one_verdict_changes_no_verdict() -> None:
    for document, requests in pairs(8, 200):
        rules = list(document.rules)
        for place in range(len(rules) - 1):
            if rules[place].verdict == rules[place + 1].verdict:
                rules[place], rules[place + 1] = rules[place + 1], rules[place]
        before, after = (
            RulePolicy(document),
            RulePolicy(msgspec.structs.replace(document, rules=tuple(rules))),
        )
        for request in requests:
            assert before.judge(request).verdict == after.judge(request).verdict


@pytest.mark.promise("P02")
def test_a_lower_tier_only_narrows() -> None:
    documents = pairs(9, 100)
    for (high, requests), (low, _) in itertools.pairwise(documents):
        alone, both = RulePolicy(high), combine(RulePolicy(high), RulePolicy(low))
        for request in requests:
            assert STRICTNESS[both.judge(request).verdict] >= STRICTNESS[alone.judge(request).verdict]
            assert both.judge(request).verdict == combine(RulePolicy(low), alone).judge(request).verdict


def test_one_more_target_never_allows_more() -> None:
    for document, requests in pairs(10, 150) + crowds(10, 300):
        policy = RulePolicy(document)
        for request in requests:
            counts = Counter(target.role for target in request.targets)
            for left_out in (target for target in request.targets if counts[target.role] > 1):
                fewer = msgspec.structs.replace(
                    request, targets=tuple(target for target in request.targets if target is not left_out)
                )
                was, now = policy.judge(fewer).verdict, policy.judge(request).verdict
                assert STRICTNESS[now] >= STRICTNESS[was], (document, request)


def test_a_tool_that_could_not_be_allowed_is_never_allowed() -> None:
    for document, requests in pairs(11, 200):
        policy = RulePolicy(document)
        for request in requests:
            if request.tool is not None and not policy.could_allow(request.tool):
                assert policy.judge(request).verdict == "deny"


def test_no_verdict_is_more_permissive_than_the_tool_can_get() -> None:
    for document, requests in pairs(13, 200):
        policy = RulePolicy(document)
        for request in requests:
            if request.tool is not None:
                verdict = policy.judge(request).verdict
                assert STRICTNESS[verdict] >= STRICTNESS[most_permissive_verdict(policy, request.tool)], (
                    document,
                    request,
                )


@pytest.mark.promise("P02")
def test_an_empty_policy_denies_everything() -> None:
    policy = RulePolicy(PolicyDocument(name="empty"))
    rng = random.Random(12)
    assert {policy.judge(random_request(rng)).verdict for _ in range(500)} == {"deny"}


def test_rules_found_to_be_covered_are_those_that_an_earlier_one_covers() -> None:
    found = 0
    for document, _ in pairs(17, 400):
        earlier = Subsumption()
        for number, rule in enumerate(document.rules):
            if number:
                earlier.add(document.rules[number - 1])
            paths = rule.paths
            if paths is not None and not (paths.globs or paths.folders or paths.inside or paths.outside):
                continue  # names no place at all, which no file can say
            expected = next((one for one in document.rules[:number] if subsumes(one, rule)), None)
            assert earlier.subsuming_rule(rule) == expected, (rule, document.rules[:number])
            found += expected is not None
    assert found > 50


def test_a_rule_that_is_called_unreachable_never_decides() -> None:
    found = 0
    for document, requests in pairs(18, 400) + crowds(18, 200):
        policy = RulePolicy(document)
        unreachable = {finding.rule for finding in lint(policy) if finding.code == "unreachable"}
        found += len(unreachable)
        assert not unreachable & {policy.judge(request).rule for request in requests}
    assert found > 50
