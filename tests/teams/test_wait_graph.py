"""The wait graph: a wait counts until the last of several ends."""

import pytest

from holdfast.core import SessionId
from holdfast.teams import WouldDeadlock
from holdfast.teams.deadlock import WaitGraph

ONE, OTHER = SessionId("one"), SessionId("other")


def never_starved(_: set[SessionId]) -> bool:
    return False


def test_a_second_wait_for_the_same_session_outlives_the_first() -> None:
    waits = WaitGraph()
    with waits.waiting_for(ONE, OTHER, is_starved=never_starved):
        with waits.waiting_for(ONE, OTHER, is_starved=never_starved):
            pass
        assert waits.waiting == {ONE}
        with pytest.raises(WouldDeadlock), waits.waiting_for(OTHER, ONE, is_starved=never_starved):
            pass
    assert waits.waiting == set()
    with waits.waiting_for(OTHER, ONE, is_starved=never_starved):
        assert waits.waiting == {OTHER}
