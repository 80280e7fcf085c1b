"""Events keep their encoded form, and the hash chain detects changes."""

from decimal import Decimal

import msgspec
import pytest

from holdfast.core import AGENT, Amount, Call, Decision, Limits, Performed, Proposed, call_id
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    GENESIS,
    CallIntended,
    CallSettled,
    Event,
    SessionOpened,
    TurnEnded,
    TurnReopened,
    decode_event,
    encode_event,
    event_hash,
)

CALL = Call(id=call_id(3, 2), operation="world.read", arguments={"path": "a.txt"})
EVENTS: list[Event] = [
    SessionOpened(
        principal=AGENT,
        folder="/f",
        workspace="/w",
        policy="p",
        policy_digest="d",
        model="m",
        limits=Limits(cost_usd=Decimal("1.5")),
    ),
    CallIntended(
        call=CALL,
        decision=Decision(verdict="allow", rule="r", reason="because"),
        digest=CALL.digest,
        tool_digest="t",
        reserved=Amount(calls=1, cost_usd=None),
    ),
    TurnEnded(turn=3, outcome=Proposed(value="x", proposals=("a.txt",))),
    TurnReopened(turn=3),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_survives_encoding_and_decoding(event: Event) -> None:
    assert decode_event(encode_event(event)) == event


def test_bytes_that_are_not_an_event_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_event(b'{"event": "made-up"}')


def test_the_hash_depends_on_every_input() -> None:
    base = event_hash(GENESIS, "s", 1, 1000, b"{}")
    others = [
        event_hash(base, "s", 1, 1000, b"{}"),
        event_hash(GENESIS, "t", 1, 1000, b"{}"),
        event_hash(GENESIS, "s", 2, 1000, b"{}"),
        event_hash(GENESIS, "s", 1, 1001, b"{}"),
        event_hash(GENESIS, "s", 1, 1000, b"{ }"),
    ]
    assert base not in others
    assert len(set(others)) == len(others)


def test_a_call_has_one_digest_whatever_the_order_of_its_arguments() -> None:
    one = Call(id=call_id(1, 1), operation="x.y", arguments={"a": 1, "b": 2})
    other = Call(id=call_id(9, 9), operation="x.y", arguments={"b": 2, "a": 1})
    assert one.digest == other.digest
    assert CALL.turn == 3


@pytest.mark.parametrize("bad", [-1, float("nan")])
def test_a_negative_number_or_nan_is_not_a_limit_or_an_amount(bad: float) -> None:
    with pytest.raises(InvalidInput):
        Limits(wall_seconds=bad)
    with pytest.raises(InvalidInput):
        Amount(wall_seconds=bad)


@pytest.mark.parametrize("bad", ["-0.01", "NaN"])
def test_a_negative_or_non_finite_price_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInput):
        Limits(cost_usd=Decimal(bad))
    with pytest.raises(InvalidInput):
        Amount(cost_usd=Decimal(bad))


def test_an_unknown_price_stays_unknown_in_a_sum() -> None:
    assert Amount(cost_usd=Decimal(1)).plus(Amount(cost_usd=None)).cost_usd is None


def test_narrowing_takes_the_stricter_of_each_limit() -> None:
    both = Limits(tokens=10, steps=5).narrowed(Limits(tokens=7, calls=3))
    assert both == Limits(tokens=7, steps=5, calls=3)


def test_an_empty_amount_is_omitted_from_the_encoded_event() -> None:
    settled = CallSettled(call=CALL.id, status="ok", amount=Performed().amount)
    assert b"amount" not in encode_event(settled)
    assert decode_event(encode_event(settled)) == settled
