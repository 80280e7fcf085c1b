"""The origins of the calls of one program."""

import pytest

from holdfast.agent.program_origins import ProgramOrigins
from holdfast.core import UNKNOWN, Json, Origin, Origins
from holdfast.guests import CALL_PLACE
from holdfast.policy import Flow, Site

CHOSEN = Origin(kind="read", operation="mail.search", is_chosen=True)
WRITTEN = Origin(kind="written", text="a")


@pytest.mark.parametrize(
    ("origins", "value", "is_lost"),
    [
        ({WRITTEN}, "a", False),
        (set(), "a", True),
        ({CHOSEN}, "a", True),
        ({CHOSEN}, [{"to": ["a"]}], True),
        ({CHOSEN}, {"a": 1}, True),
        ({CHOSEN}, 3, False),
        (set(), None, False),
        (set(), "", False),
        (set(), [], False),
    ],
)
def test_a_text_that_is_made_of_nothing_may_be_anyones(
    origins: set[Origin], value: Json, is_lost: bool
) -> None:
    made_of: Origins = frozenset(origins)
    flow = Flow(sites={(0, 9): Site(operations=frozenset({"pay"}), arguments={"to": made_of})})
    place = CALL_PLACE.set((0, 9))
    found = ProgramOrigins("own", flow).of_call("pay", {"to": value}).arguments["to"]
    CALL_PLACE.reset(place)
    assert found == (made_of | {UNKNOWN} if is_lost else made_of)
