"""Soundness of the flow: whatever a random program really moves into an argument, the analysis lists."""

import pytest
from tests.policy.flow.random_programs import MARKS, TOOLS, Machine, ProgramWriter

from holdfast.core import Origin, Origins
from holdfast.policy.flow.python_flow import python_flow

PROGRAMS_IN_SHORT_FORM = 160


def _covers(origin: Origin, operation: str, path: tuple[str, ...]) -> bool:
    if origin.is_chosen or origin.kind == "written":
        return False
    if origin.kind != "read":
        return True
    return origin.operation == operation and all(
        one in ("*", other) for one, other in zip(origin.path, path, strict=False)
    ) and len(origin.path) <= len(path)  # fmt: skip


def _missed(marks: frozenset[str], origins: Origins) -> list[tuple[str, tuple[str, ...]]]:
    return [MARKS[mark] for mark in marks if not any(_covers(origin, *MARKS[mark]) for origin in origins)]


def check_session(seed: int) -> tuple[int, int]:
    """Run two random programs of one session. Returns how many arguments had marks, and how many the analysis followed."""
    writer, machine = ProgramWriter(seed), Machine()
    variables: dict[str, Origins] = {}
    marked = followed = 0
    earlier: list[str] = []
    for _ in range(2):
        code = writer.program(earlier)
        earlier.append(code)
        flow = python_flow(code, tools=TOOLS, variables=variables)
        machine.payments.clear()
        machine.shown.clear()
        machine.run(code)
        for place, argument, marks in machine.payments:
            missed = _missed(marks, flow.origins_of(place, "pay", argument))
            assert not missed, f"seed {seed}: {missed} in {argument} at {place} of\n{code}"
            marked += bool(marks)
            followed += bool(marks) and not flow.unknown
        if not flow.unknown:
            assert not _missed(frozenset(machine.shown), flow.shown), f"seed {seed}: shown by\n{code}"
        variables = dict(flow.variables)
    return marked, followed


def test_nothing_that_a_random_program_moves_into_an_argument_is_missed() -> None:
    counts = [check_session(seed) for seed in range(PROGRAMS_IN_SHORT_FORM // 2)]
    # The programs must move something, and the analysis must follow most of them, or the test says nothing.
    assert sum(marked for marked, _ in counts) > 30
    assert sum(followed for _, followed in counts) > sum(marked for marked, _ in counts) * 0.5


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first_seed", range(10_000, 60_000, 1_000))
def test_nothing_is_missed_in_a_hundred_thousand_random_programs(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 1_000):
        check_session(seed)
