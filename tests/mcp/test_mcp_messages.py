"""Parsing of what a server sends: every line is a message, is ignored, or breaks the protocol."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from holdfast.core import FakeClock
from holdfast.mcp.client.notifications import RateLimiter
from holdfast.mcp.client.pending_requests import PendingRequests, ProtocolViolation
from holdfast.mcp.client.stdio import parse_line
from holdfast.mcp.client.tool_definitions import read_definitions
from holdfast.process.supervised import InvalidLine, read_lines

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
frames = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | json_values,
        "id": st.integers() | json_values,
        "method": st.sampled_from(["ping", "roots/list", "notifications/progress"]) | json_values,
        "params": json_values,
        "result": json_values,
        "error": json_values,
    },
)


@given(st.binary() | frames.map(lambda frame: json.dumps(frame).encode()))
def test_a_line_is_a_message_or_is_ignored_or_breaks_the_protocol(line: bytes) -> None:
    try:
        message = parse_line(line, RateLimiter(FakeClock()), PendingRequests())
    except ProtocolViolation:
        return
    assert message is None or isinstance(message, SessionMessage)


@given(frames, st.binary(min_size=1, max_size=3))
def test_no_response_is_accepted_while_no_request_is_open(frame: dict[str, object], rest: bytes) -> None:
    answer = {"jsonrpc": "2.0", "id": 1} | frame | {"result": {}}
    answer.pop("method", None)
    with pytest.raises(ProtocolViolation):
        parse_line(
            json.dumps(answer | {"jsonrpc": "2.0"}).encode() + rest.strip(),
            RateLimiter(FakeClock()),
            PendingRequests(),
        )


def test_a_late_response_is_accepted_once() -> None:
    pending = PendingRequests()
    pending.record_sent(JSONRPCRequest(jsonrpc="2.0", id=7, method="tools/call"))
    pending.record_sent(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled"))
    pending.record_received(JSONRPCResponse(jsonrpc="2.0", id="7", result={}))
    with pytest.raises(ProtocolViolation):
        pending.record_received(JSONRPCResponse(jsonrpc="2.0", id=7, result={}))


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["name", "title", "description", "inputSchema", "outputSchema", "annotations"]),
            json_values,
        ),
        max_size=6,
    )
)
def test_no_list_of_tools_breaks_the_parser_and_no_two_offered_names_look_alike(
    tools: list[dict[str, object]],
) -> None:
    offered, refused = read_definitions(tools)  # type: ignore[arg-type]
    assert len(offered) + len(refused) == len(tools)
    assert len({definition.name.casefold() for definition in offered}) == len(offered)


def test_the_rate_limiter_refills_over_time_up_to_its_burst() -> None:
    clock = FakeClock()
    limiter = RateLimiter(clock, burst=3, per_second=2.0)
    assert [limiter.take() for _ in range(5)] == [True, True, True, False, False]
    clock.advance(1.0)
    assert [limiter.take() for _ in range(3)] == [True, True, False]
    clock.advance(3600.0)
    assert [limiter.take() for _ in range(4)] == [True, True, True, False]
    assert limiter.dropped == 4


@pytest.mark.parametrize(
    "pieces", [[b"x" * 11 + b"\n"], [b"x" * 10, b"x\n"], [b"x" * 11], [b"ok\n" + b"x" * 11 + b"\n"]]
)
async def test_a_line_that_is_too_long_ends_reading_however_it_is_split(pieces: list[bytes]) -> None:
    stream = asyncio.StreamReader()
    for piece in pieces:
        stream.feed_data(piece)
    stream.feed_eof()
    record_received: list[bytes] = []
    with pytest.raises(InvalidLine, match="a message of more than"):
        record_received += [line async for line in read_lines(stream, max_bytes=10)]
    assert b"x" * 11 not in record_received


async def test_a_line_of_the_maximum_length_is_read() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(b"\n" + b"x" * 10 + b"\n \n")
    stream.feed_eof()
    assert [line async for line in read_lines(stream, max_bytes=10)] == [b"x" * 10]
