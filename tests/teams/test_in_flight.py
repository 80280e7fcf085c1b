"""Messages in flight: the latest finished ones are kept, unfinished ones always."""

from holdfast.core import PERSON, Ok
from holdfast.teams import Pair, TeamMessage, TeamReply
from holdfast.teams.in_flight import InFlightTable

PAIR = Pair(sender="a", receiver="b")


def message(number: int) -> TeamMessage:
    return TeamMessage(id=str(number), text="", sender="a", principal=PERSON)


def test_the_latest_finished_messages_and_all_unfinished_ones_are_kept() -> None:
    in_flight_table = InFlightTable(keep=2)
    in_flight_table.add(message(0), PAIR)
    for number in range(1, 6):
        in_flight_table.add(message(number), PAIR).finish(TeamReply(outcome=Ok()))
    in_flight_table.add(message(6), PAIR)
    assert [each.message for each in in_flight_table.statuses(PAIR)] == ["0", "4", "5", "6"]
