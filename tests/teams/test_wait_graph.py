"""Who waits for whom: a wait counts until the last of several is over."""

import pytest

from holdfast.core import SessionId
from holdfast.teams import WouldDeadlock
from holdfast.teams.deadlock import WaitGraph

ONE, OTHER = SessionId("one"), SessionId("other")


def nobody_starves(_: set[SessionId]) -> bool:
    return False


def test_of_two_questions_to_the_same_the_second_still_waits_when_the_first_is_answered() -> None:
    waits = WaitGraph()
    with waits.waiting_for(ONE, OTHER, is_starved=nobody_starves):
        with waits.waiting_for(ONE, OTHER, is_starved=nobody_starves):
            pass
        assert waits.waiting == {ONE}
        with pytest.raises(WouldDeadlock), waits.waiting_for(OTHER, ONE, is_starved=nobody_starves):
            pass
    assert waits.waiting == set()
    with waits.waiting_for(OTHER, ONE, is_starved=nobody_starves):
        assert waits.waiting == {OTHER}
