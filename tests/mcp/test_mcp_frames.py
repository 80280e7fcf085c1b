"""Whatever a server puts on the wire: it is a message, or it is nothing."""

import json

from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage

from holdfast.core import FakeClock
from holdfast.mcp.definitions import read_definitions
from holdfast.mcp.process import parse
from holdfast.mcp.ration import Ration

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
def test_a_line_is_a_message_or_nothing(line: bytes) -> None:
    assert parse(line, Ration(FakeClock())) is None or isinstance(
        parse(line, Ration(FakeClock())), SessionMessage
    )


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["name", "title", "description", "inputSchema", "outputSchema", "annotations"]),
            json_values,
        ),
        max_size=6,
    )
)
def test_no_list_of_tools_breaks_the_reader_and_no_two_offered_look_alike(
    tools: list[dict[str, object]],
) -> None:
    offered, refused = read_definitions(tools)  # type: ignore[arg-type]
    assert len(offered) + len(refused) == len(tools)
    assert len({definition.name.casefold() for definition in offered}) == len(offered)


def test_a_ration_fills_with_time_and_never_above_its_size() -> None:
    clock = FakeClock()
    ration = Ration(clock, burst=3, per_second=2.0)
    assert [ration.take() for _ in range(5)] == [True, True, True, False, False]
    clock.advance(1.0)
    assert [ration.take() for _ in range(3)] == [True, True, False]
    clock.advance(3600.0)
    assert [ration.take() for _ in range(4)] == [True, True, True, False]
    assert ration.dropped == 4
