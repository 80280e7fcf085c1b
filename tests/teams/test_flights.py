"""Letters on their way: what has ended is kept for a while, what has not is never forgotten."""

from holdfast.core import PERSON, Ok
from holdfast.teams import Letter, Pair, Reply
from holdfast.teams.in_flight import Flights

PAIR = Pair(sender="a", receiver="b")


def letter(number: int) -> Letter:
    return Letter(id=str(number), text="", sender="a", principal=PERSON)


def test_of_letters_that_have_ended_the_latest_are_kept_and_the_others_all() -> None:
    flights = Flights(keep=2)
    flights.begin(letter(0), PAIR)
    for number in range(1, 6):
        flights.begin(letter(number), PAIR).end(Reply(outcome=Ok()))
    flights.begin(letter(6), PAIR)
    assert [each.message for each in flights.of(PAIR)] == ["0", "4", "5", "6"]
