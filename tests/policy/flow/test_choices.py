"""Soundness of choices: where what is read decides about an argument, the analysis lists it."""

import pytest
from tests.policy.flow.choice_programs import TOOLS, ChoiceWriter, differing

from holdfast.policy.flow.python_flow import python_flow


def check_program(seed: int) -> tuple[int, bool]:
    """Run a random program with several texts. Returns how many payments differed, and whether the analysis followed it."""
    code = ChoiceWriter(seed).program()
    flow = python_flow(code, tools=TOOLS, variables={})
    places = list(differing(code))
    for place in places:
        origins = flow.origins_of(place, "pay", "to")
        assert any(one.kind == "unknown" or one.operation == "read" for one in origins), (
            f"seed {seed}: {place} of\n{code}"
        )
    return len(places), not flow.unknown


def test_what_decides_about_an_argument_of_a_random_program_is_listed() -> None:
    results = [check_program(seed) for seed in range(120)]
    assert sum(differed for differed, _ in results) > 40
    assert sum(followed for _, followed in results) > 90


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first_seed", range(1_000, 21_000, 1_000))
def test_no_choice_is_missed_in_twenty_thousand_random_programs(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 1_000):
        check_program(seed)
