"""Letters on their way: what has ended is kept for a while, what has not is never forgotten."""

from holdfast.core import PERSON, Ok
from holdfast.teams import Pair, TeamMessage, TeamReply
from holdfast.teams.in_flight import InFlightTable

PAIR = Pair(sender="a", receiver="b")


def letter(number: int) -> TeamMessage:
    return TeamMessage(id=str(number), text="", sender="a", principal=PERSON)


def test_of_letters_that_have_ended_the_latest_are_kept_and_the_others_all() -> None:
    flights = InFlightTable(keep=2)
    flights.begin(letter(0), PAIR)
    for number in range(1, 6):
        flights.begin(letter(number), PAIR).end(TeamReply(outcome=Ok()))
    flights.begin(letter(6), PAIR)
    assert [each.message for each in flights.of(PAIR)] == ["0", "4", "5", "6"]
